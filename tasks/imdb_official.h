#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace spt::tasks {

/// Number of tokens, special ones included, of the official training reviews cut to `max_length` - 1 characters, when a character needs 15
/// occurrences. Known for max_length 1024, 2048 and 4096; so that a matrix can be planned without the data.
std::optional<int64_t> official_imdb_vocabulary(int64_t max_length);

/// (length with `<eos>`, how many of the 25,000 official training reviews have it when cut to `max_length`), by length.
///
/// Errors: SPT_CHECK that max_length <= 4096.
std::vector<std::pair<int64_t, int64_t>> official_imdb_lengths(int64_t max_length);

}  // namespace spt::tasks
