#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sample {

std::int64_t add(std::int64_t left, std::int64_t right);
std::int64_t subtract(std::int64_t left, std::int64_t right);
std::int64_t clamp(std::int64_t value, std::int64_t low, std::int64_t high);
std::int64_t total(const std::vector<std::int64_t>& values);
std::string build_info();
int headers_release();

}  // namespace sample
