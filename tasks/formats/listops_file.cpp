#include <algorithm>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "tasks/formats/listops.h"

namespace spt::formats {
namespace {

constexpr std::string_view kListopsHeader = "Source\tTarget";

uint8_t listops_code(std::string_view word, std::string_view where) {
  for (uint8_t token = 0; token < kListopsTokens; ++token) {
    if (word == listops_text(token)) return token;
  }
  throw Error("{}: '{}' is no ListOps token; known: 0 to 9, [MIN [MAX [MED [SM ] and the dropped ( )", where, word.substr(0, 40));
}

int64_t listops_label(std::string_view text, std::string_view where) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '9') throw Error("{}: the label is '{}'; allowed: 0 to 9", where, text.substr(0, 40));
  return text[0] - '0';
}

void add_line(ListopsExamples& examples, std::string_view line, bool official, const std::string& where) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) {
    throw Error("{}: expected two fields with a tab between ({})", where, official ? "expression, label" : "label, expression");
  }
  const std::string_view left = line.substr(0, tab);
  const std::string_view right = line.substr(tab + 1);
  const std::vector<uint8_t> tokens = parse_listops(official ? left : right, where);
  const int64_t label = listops_label(official ? right : left, where);
  int64_t value = 0;
  try {
    value = evaluate_listops(tokens);
  } catch (const Error& error) {
    throw Error("{}: {}", where, error.what());
  }
  if (value != label) throw Error("{}: the label is {}, but the expression's value is {}", where, label, value);
  examples.add(tokens, label);
}

/// Number of arguments of the operator at each position (0 elsewhere).
std::vector<size_t> argument_counts(std::span<const uint8_t> tokens) {
  std::vector<size_t> counts(tokens.size(), 0);
  std::vector<size_t> open;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kListopsEnd) {
      SPT_CHECK(!open.empty(), "not an expression");
      open.pop_back();
    } else {
      if (!open.empty()) ++counts[open.back()];
      if (tokens[i] >= 10) open.push_back(i);
    }
  }
  return counts;
}

std::string file_text(const ListopsExamples& examples) {
  // Python's csv module, which wrote the official files, ends lines with CR LF.
  std::string text = fmt::format("{}\r\n", kListopsHeader);
  for (int64_t i = 0; i < examples.size(); ++i) text += fmt::format("{}\t{}\r\n", format_listops(examples.tokens(i)), examples.label(i));
  return text;
}

/// Leaves a file alone that holds just this; another one may be the official data, or cost its maker hours.
void write_listops(const ListopsExamples& examples, const std::filesystem::path& file) {
  const std::string text = file_text(examples);
  if (!std::filesystem::exists(file)) return write_file_atomically(file, text);
  if (read_file(file) != text)
    throw Error("'{}' exists and holds other expressions than these options and this seed give: move it away, or choose another --data",
                file.string());
}

}  // namespace

std::vector<uint8_t> parse_listops(std::string_view text, std::string_view where) {
  std::vector<uint8_t> tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!word.empty() && word != "(" && word != ")") tokens.push_back(listops_code(word, where));
    at = end + 1;
  }
  return tokens;
}

std::string format_listops(std::span<const uint8_t> tokens) {
  const std::vector<size_t> arguments = argument_counts(tokens);
  std::string text;
  size_t open = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ' ';
    if (tokens[i] == kListopsEnd) {
      // One parenthesis closes the operator's last step, another the step of the operator that holds it.
      text += --open > 0 ? "] ) )" : "] )";
    } else if (tokens[i] < 10) {
      text += listops_text(tokens[i]);
      if (open > 0) text += " )";
    } else {
      for (size_t k = 0; k <= arguments[i]; ++k) text += "( ";
      text += listops_text(tokens[i]);
      ++open;
    }
  }
  return text;
}

ListopsExamples read_listops(std::istream& input, std::string_view where) {
  ListopsExamples examples;
  bool official = false;
  std::string line;
  for (int64_t number = 1; std::getline(input, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number == 1 && line == kListopsHeader) {
      official = true;
      continue;
    }
    add_line(examples, line, official, fmt::format("{}, line {}", where, number));
  }
  if (input.bad()) throw Error("{}: cannot be read to its end", where);
  if (examples.size() == 0) throw DataError("{}: no expressions in it", where);
  return examples;
}

ListopsExamples read_listops_file(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  if (!input) {
    throw DataError("there is no '{}'; put Long Range Arena's file there, or make data of the same kind: spt-bench data make listops",
                    file.string());
  }
  return read_listops(input, file.string());
}

std::filesystem::path listops_file(const std::filesystem::path& folder, std::string_view split) {
  SPT_CHECK(split == "train" || split == "validation" || split == "test", "no split '{}'", split);
  return folder / fmt::format("basic_{}.tsv", split == "validation" ? "val" : split);
}

std::array<std::filesystem::path, 3> make_listops_files(const ListopsOptions& options, const ListopsCounts& counts,
                                                        const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw Error("cannot make the folder '{}': {}", folder.string(), problem.message());
  std::array<std::filesystem::path, 3> files;
  constexpr std::array<std::string_view, 3> kSplits = {"train", "validation", "test"};
  const std::array<int64_t, 3> sizes = {counts.train, counts.validation, counts.test};
  for (size_t k = 0; k < kSplits.size(); ++k) {
    files[k] = listops_file(folder, kSplits[k]);
    write_listops(generate_listops(options, kSplits[k], sizes[k]), files[k]);
  }
  return files;
}

}  // namespace spt::formats
