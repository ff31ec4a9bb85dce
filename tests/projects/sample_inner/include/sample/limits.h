#pragma once

#include <cstdint>

namespace sample {

constexpr std::int64_t largest = 1'000'000;

}  // namespace sample
