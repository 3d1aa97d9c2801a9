#include "harness/matrix.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/rng.h"
#include "harness/base/toml.h"
#include "harness/job.h"
#include "results/record.h"

namespace spt {
namespace {

const std::vector<std::string> kStageNames = {"finetune", "pretrain"};

[[noreturn]] void fail_unknown(const TomlReader& reader, const std::string& key, std::string_view what, const std::string& value,
                               const std::vector<std::string>& known) {
  reader.fail(key, unknown_name(what, value, known));
}

std::string choice(TomlReader& reader, const std::string& key, const std::vector<std::string>& known, const std::string& fallback) {
  const auto value = reader.get<std::string>(key, fallback);
  if (std::find(known.begin(), known.end(), value) == known.end()) fail_unknown(reader, key, "value", value, known);
  return value;
}

/// U+202A to U+202E and U+2066 to U+2069: with them a label reads as another.
bool has_direction_mark(std::string_view text) {
  for (size_t i = 0; i + 2 < text.size(); ++i) {
    const auto last = static_cast<unsigned char>(text[i + 2]);
    if (text.substr(i, 2) == "\xE2\x80" && last >= 0xAA && last <= 0xAE) return true;
    if (text.substr(i, 2) == "\xE2\x81" && last >= 0xA6 && last <= 0xA9) return true;
  }
  return false;
}

// Names are parts of paths-like job names ("task/architecture/arm/seed=3") and of comma-separated lists.
void check_label(const TomlReader& reader, const std::string& key, const std::string& label) {
  constexpr size_t kLongest = 100;
  const auto bad = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F' || c == '/' || c == ',' || c == '@'; };
  if (label.empty()) reader.fail(key, "is empty; give at least one character");
  if (label.size() > kLongest) reader.fail(key, fmt::format("has {} bytes; give at most {}", label.size(), kLongest));
  if (std::any_of(label.begin(), label.end(), bad)) reader.fail(key, "must not have a '/', ',', '@', line break or control character");
  if (std::string_view("=+-").find(label.front()) != std::string_view::npos)  // a spreadsheet would run it as a formula
    reader.fail(key, fmt::format("'{}' must not begin with '=', '+' or '-'", label));
  if (has_direction_mark(label)) reader.fail(key, "must not have characters that turn the direction of the text");
}

Settings read_settings(TomlReader reader, std::string_view what) {
  Settings settings;
  for (const std::string& key : reader.keys()) settings[key] = {reader.scalar(key), fmt::format("{} {}", reader.place(key), what)};
  return settings;
}

// Settings of training, whose names and ranges are known without the catalog.
Settings read_train(TomlReader reader, std::string_view what) {
  static const std::vector<OptionSchema> kSchema = schema_of<TrainOptions>();
  std::vector<std::string> known;
  for (const OptionSchema& option : kSchema) known.push_back(option.name);
  Settings settings = read_settings(reader, what);
  for (auto& [key, setting] : settings) {
    const auto option = std::find_if(kSchema.begin(), kSchema.end(), [&](const OptionSchema& o) { return o.name == key; });
    if (option == kSchema.end()) throw Error("{}: {}", reader.place(key), unknown_name("training option", key, known));
    setting.value = checked(*option, setting.value, reader.place(key));
  }
  return settings;
}

MatrixComponent read_component(TomlReader& reader, const std::string& what, bool sizes) {
  MatrixComponent component;
  component.origin = reader.place();
  component.name = reader.get<std::string>("name");
  component.label = reader.get<std::string>("label", component.name);
  check_label(reader, reader.has("label") ? "label" : "name", component.label);
  if (sizes) component.size = reader.get<std::string>("size", "");
  if (sizes && reader.has("size") && component.size.empty()) reader.fail("size", "must name a preset, such as \"100K\"");
  if (sizes && reader.has("checkpoint")) {
    component.checkpoint = {reader.get<std::string>("checkpoint"), fmt::format("{} [[{}]]", reader.place("checkpoint"), what)};
    if (component.checkpoint->value == OptionValue(std::string())) reader.fail("checkpoint", "must name a file of weights");
    component.label += results::kExternalLabel;
  }
  if (reader.has("options")) component.options = read_settings(reader.table("options"), fmt::format("[[{}]]", what));
  reader.finish();
  return component;
}

void check_unique(const std::vector<MatrixComponent>& components, const std::string& what) {
  std::map<std::string, std::string> places;
  for (const MatrixComponent& component : components) {
    const auto [first, fresh] = places.emplace(component.label, component.origin);
    if (!fresh)
      throw Error("{}: the {} label '{}' stands at {} too; give one of them another label", component.origin, what, component.label,
                  first->second);
  }
}

std::vector<MatrixComponent> read_components(TomlReader& root, const std::string& what, bool sizes) {
  std::vector<MatrixComponent> components;
  for (TomlReader& reader : root.tables(what)) components.push_back(read_component(reader, what, sizes));
  if (components.empty()) throw Error("{}: no [[{}]]; name at least one", root.place(), what);
  check_unique(components, what);
  return components;
}

std::vector<MatrixComponent> read_protocols(TomlReader& root) {
  if (root.has("protocol")) {
    if (root.has("protocols")) root.fail("protocols", "give either this list or [[protocol]] tables");
    return read_components(root, "protocol", false);
  }
  std::vector<MatrixComponent> protocols;
  for (const std::string& name : root.list<std::string>("protocols")) {
    check_label(root, "protocols", name);
    protocols.push_back({name, name, "", {}, root.place("protocols")});
  }
  if (protocols.empty()) root.fail("protocols", "is empty; name at least one, such as \"scratch\"");
  check_unique(protocols, "protocol");
  return protocols;
}

uint64_t read_seed(TomlReader& reader, const std::string& key, int64_t seed) {
  if (seed < 0) reader.fail(key, fmt::format("a seed is an integer of at least 0, not {}", seed));
  return static_cast<uint64_t>(seed);
}

std::vector<uint64_t> read_seeds(TomlReader& root) {
  std::vector<uint64_t> seeds;
  if (root.is_table("seeds")) {
    TomlReader reader = root.table("seeds");
    const uint64_t first = read_seed(reader, "first", reader.get<int64_t>("first"));
    const auto count = reader.get<int64_t>("count");
    if (count < 1 || count > 1'000'000) reader.fail("count", fmt::format("{} is not from 1 to 1000000", count));
    constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();  // of TOML and of the database
    if (first > kLargest - static_cast<uint64_t>(count) + 1)
      reader.fail("first", fmt::format("{} leaves no room for {} seeds", first, count));
    reader.finish();
    for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) seeds.push_back(first + i);
    return seeds;
  }
  if (root.has("seeds") && !root.is_list("seeds")) root.fail("seeds", "must be a list such as [1, 2, 3], or {first = 1, count = 3}");
  for (const int64_t seed : root.list<int64_t>("seeds")) seeds.push_back(read_seed(root, "seeds", seed));
  if (seeds.empty()) root.fail("seeds", "is empty; give at least one");
  if (std::set<uint64_t>(seeds.begin(), seeds.end()).size() != seeds.size()) root.fail("seeds", "names a seed twice");
  return seeds;
}

Budget read_amount(TomlReader reader, std::string_view what) {
  static constexpr std::pair<const char*, BudgetUnit> kUnits[] = {
      {"steps", BudgetUnit::kSteps}, {"epochs", BudgetUnit::kEpochs}, {"examples", BudgetUnit::kExamples}, {"tokens", BudgetUnit::kTokens}};
  std::optional<Budget> budget;
  for (const auto& [key, unit] : kUnits) {
    if (!reader.has(key)) continue;
    if (budget) reader.fail(key, "is a second unit; give one of steps, epochs, examples, tokens");
    const double amount = unit == BudgetUnit::kEpochs ? reader.get<double>(key) : static_cast<double>(reader.get<int64_t>(key));
    if (amount <= 0) reader.fail(key, "must be above 0");
    budget = Budget{unit, amount, fmt::format("{} {}", reader.place(key), what)};
  }
  reader.finish();
  if (!budget) throw Error("{}: give one of steps, epochs, examples, tokens", reader.place());
  return *budget;
}

Setting read_share(TomlReader reader, std::string_view what) {
  const auto share = reader.get<double>("share");
  if (share <= 0 || share >= 1) reader.fail("share", fmt::format("{} is not between 0 and 1: it is P / (P + F)", share));
  const std::string origin = fmt::format("{} {}", reader.place("share"), what);
  reader.finish();
  return {share, origin};
}

Budgets read_budgets(TomlReader& reader, std::string_view what) {
  Budgets budgets;
  if (reader.has("finetune")) budgets.finetune = read_amount(reader.table("finetune"), what);
  if (reader.has("total")) budgets.total = read_amount(reader.table("total"), what);
  if (reader.has("pretrain")) {
    TomlReader pretrain = reader.table("pretrain");
    if (pretrain.has("share")) budgets.share = read_share(std::move(pretrain), what);
    else budgets.pretrain = read_amount(std::move(pretrain), what);
  }
  if (budgets.total && budgets.finetune) reader.fail("finetune", "a matrix gives finetune or total, not both");
  if (budgets.total && budgets.pretrain) reader.fail("pretrain", "with total, pretraining is a share of it: pretrain = { share = 0.5 }");
  return budgets;
}

std::vector<Basis> read_match(TomlReader& reader) {
  static const std::vector<std::string> kNames = {"steps", "examples", "tokens", "flops"};
  std::vector<Basis> match;
  for (const std::string& name : reader.list<std::string>("match")) {
    if (name == "wall") reader.fail("match", "matching by wall time is not in this version; valid: steps, examples, tokens, flops");
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) fail_unknown(reader, "match", "basis", name, kNames);
    const auto basis = static_cast<Basis>(found - kNames.begin());
    if (std::find(match.begin(), match.end(), basis) != match.end()) reader.fail("match", fmt::format("names {} twice", name));
    match.push_back(basis);
  }
  if (match.empty()) reader.fail("match", "is empty; name at least one of steps, examples, tokens, flops");
  return match;
}

void read_budget_section(TomlReader& root, Matrix& matrix) {
  TomlReader reader = root.table("budget");
  matrix.budgets = read_budgets(reader, "[budget]");
  if (reader.has("match")) matrix.match = read_match(reader);
  matrix.evaluations = reader.get<int64_t>("evaluations", matrix.evaluations);
  if (matrix.evaluations < 1) reader.fail("evaluations", fmt::format("{} must be at least 1", matrix.evaluations));
  reader.finish();
  if (!matrix.budgets.finetune && !matrix.budgets.total)
    throw Error("{}: give finetune (F) or total (T), such as finetune = {{ steps = 400 }}", reader.place());
}

std::string read_label_of(TomlReader& reader, const std::string& key, const std::vector<MatrixComponent>* known) {
  if (!reader.has(key)) return "";
  const auto label = reader.get<std::string>(key);
  if (label.empty()) reader.fail(key, "is empty; leave it out to select all");
  if (!known) return label;  // labels that planning adds are checked there
  std::vector<std::string> labels;
  for (const MatrixComponent& component : *known) labels.push_back(component.label);
  if (std::find(labels.begin(), labels.end(), label) == labels.end()) fail_unknown(reader, key, key + " label", label, labels);
  return label;
}

Override read_override(TomlReader& reader, const Matrix& matrix) {
  Override result;
  result.origin = reader.place();
  result.architecture = read_label_of(reader, "architecture", nullptr);
  result.task = read_label_of(reader, "task", &matrix.tasks);
  result.protocol = read_label_of(reader, "protocol", nullptr);
  if (reader.has("stage")) result.stage = choice(reader, "stage", kStageNames, "");
  if (reader.has("train")) result.train = read_train(reader.table("train"), "[[override]]");
  if (reader.has("budget")) {
    TomlReader budget = reader.table("budget");
    result.budget = read_budgets(budget, "[[override]]");
    budget.finish();
    if (matrix.total_mode() && (result.budget.finetune || result.budget.pretrain))
      reader.fail("budget", "the matrix is in total mode: override total or pretrain.share");
    if (!matrix.total_mode() && result.budget.total) reader.fail("budget", "the matrix is in finetune mode: override finetune or pretrain");
  }
  reader.finish();
  if (reader.has("budget") && (result.task.empty() || result.specificity() != 1))
    reader.fail("budget", "is the same for all architectures, protocols and stages: select with `task` alone");
  if (!reader.has("train") && !reader.has("budget")) throw Error("{}: an override without train or budget changes nothing", reader.place());
  return result;
}

void read_streams(TomlReader& root, Matrix& matrix) {
  if (!root.has("streams")) return;
  TomlReader reader = root.table("streams");
  for (const std::string& name : Rng::names())
    if (reader.has(name)) matrix.streams[name] = read_seed(reader, name, reader.get<int64_t>(name));
  reader.finish();
}

void read_analysis(TomlReader& root, Matrix& matrix) {
  if (!root.has("analysis")) return;
  TomlReader reader = root.table("analysis");
  matrix.margin = reader.get<double>("margin", 0.0);
  if (matrix.margin < 0) reader.fail("margin", "must be at least 0");
  matrix.planned_n = reader.get<int64_t>("planned_n", 0);
  if (matrix.planned_n < 0) reader.fail("planned_n", "must be at least 0");
  reader.finish();
}

void read_stages(TomlReader& root, Matrix& matrix) {
  if (!root.has("stage")) return;
  TomlReader reader = root.table("stage");
  for (const std::string& name : kStageNames)
    if (reader.has(name)) matrix.stages[name] = read_train(reader.table(name), fmt::format("[stage.{}]", name));
  reader.finish();
}

void read_reference(TomlReader& root, Matrix& matrix) {
  matrix.reference = root.get<std::string>("reference", matrix.architectures.front().label);
  std::vector<std::string> labels;
  for (const MatrixComponent& architecture : matrix.architectures) labels.push_back(architecture.label);
  if (std::find(labels.begin(), labels.end(), matrix.reference) == labels.end())
    fail_unknown(root, "reference", "architecture label", matrix.reference, labels);
}

}  // namespace

OptionMap values(const Settings& settings) {
  OptionMap map;
  for (const auto& [name, setting] : settings) map[name] = setting.value;
  return map;
}

std::string_view basis_name(Basis basis) {
  static constexpr std::string_view kNames[] = {"steps", "examples", "tokens", "flops"};
  return kNames[static_cast<size_t>(basis)];
}

bool Override::selects(std::string_view of_architecture, std::string_view of_task, std::string_view of_protocol,
                       std::string_view of_stage) const {
  const auto fits = [](const std::string& mine, std::string_view other) { return mine.empty() || mine == other; };
  return fits(architecture, of_architecture) && fits(task, of_task) && fits(protocol, of_protocol) && fits(stage, of_stage);
}

Matrix parse_matrix(std::string_view text, const std::string& file) {
  const TomlValue document = parse_toml(text, file);
  TomlReader root(document, file, "");
  Matrix matrix;
  matrix.text = text;
  matrix.file = file;
  for (const char* key : {"name", "profile", "seeds", "reference", "protocols", "protocol", "budget", "train", "stage", "architecture",
                          "task", "override", "streams", "analysis"})
    root.has(key);
  root.finish();  // first, so that a misspelt section is not reported as a missing one
  matrix.name = root.get<std::string>("name");
  check_label(root, "name", matrix.name);
  matrix.profile = choice(root, "profile", {"fair", "paper"}, matrix.profile);
  matrix.seeds = read_seeds(root);
  matrix.protocols = read_protocols(root);
  matrix.architectures = read_components(root, "architecture", true);
  matrix.tasks = read_components(root, "task", false);
  read_reference(root, matrix);
  read_budget_section(root, matrix);
  if (root.has("train")) matrix.train = read_train(root.table("train"), "[train]");
  read_stages(root, matrix);
  for (TomlReader& reader : root.tables("override")) matrix.overrides.push_back(read_override(reader, matrix));
  read_streams(root, matrix);
  read_analysis(root, matrix);
  return matrix;
}

std::string analysis_hash(const Matrix& matrix) {
  const int64_t n = matrix.planned_n > 0 ? matrix.planned_n : static_cast<int64_t>(matrix.seeds.size());
  return sha256(canonical(
      {{"reference", matrix.reference}, {"margin", matrix.margin}, {"family", "all"}, {"primary", "interaction"}, {"planned_n", n}}));
}

}  // namespace spt
