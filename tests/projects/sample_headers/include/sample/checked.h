#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "sample/limits.h"

namespace sample {

// The value if it is within the bound, else an error that names it.
inline std::int64_t checked(std::int64_t value) {
  if (value > largest) {
    throw std::overflow_error(std::to_string(value) + " is out of bounds (" __FILE__ ")");
  }
  return value;
}

}  // namespace sample
