#include "operators.h"

#include <algorithm>

namespace sample {

std::int64_t clamp(std::int64_t value, std::int64_t low, std::int64_t) {
  return std::max(value, low);
}

}  // namespace sample
