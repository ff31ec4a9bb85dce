#include "operators.h"

#include "sample/checked.h"

namespace sample {

std::int64_t total(const std::vector<std::int64_t>& values) {
  std::int64_t sum = 0;
  for (const std::int64_t value : values) {
    sum = checked(sum + value);
  }
  return sum;
}

}  // namespace sample
