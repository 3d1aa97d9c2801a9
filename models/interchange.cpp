#include "models/interchange.h"

#include <torch/torch.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>

namespace spt::models {
namespace {

/// Which networks a row of the table is for.
enum class NameUse { kAny, kTokenEncoder, kPlainHead, kRetrievalHead };

/// Ours <-> published. '#' is the number of a layer, which is scale * # + offset there; a '*' at the end stands for any last part.
struct NameRow {
  const char* ours;
  const char* published;
  int64_t scale = 1, offset = 0;
  int64_t part = -1;  ///< of a fused query_key_value: 0 query, 1 key, 2 value
  NameUse use = NameUse::kAny;
};
using NameTable = std::vector<NameRow>;

/// What every model of the official repository has around its body (README-transformer.md 2), and the rows of the body.
NameTable with_shell(std::initializer_list<NameTable> bodies) {
  NameTable table = {{"encoder.*", "encoder.0.*"},
                     {"head.*", "decoder.0.output_transform.*"},
                     {.ours = "head.hidden.*", .published = "decoder.0.output_transform.0.*", .use = NameUse::kPlainHead},
                     {.ours = "head.output.*", .published = "decoder.0.output_transform.2.*", .use = NameUse::kPlainHead},
                     {.ours = "head.hidden.*", .published = "decoder.0.retrieval.classifier.0.*", .use = NameUse::kRetrievalHead},
                     {.ours = "head.output.*", .published = "decoder.0.retrieval.classifier.2.*", .use = NameUse::kRetrievalHead}};
  for (const NameTable& body : bodies) table.insert(table.end(), body.begin(), body.end());
  return table;
}

/// README-transformer.md 2: a layer of ours is two published blocks.
NameTable transformer_names() {
  return with_shell({{{"body.layers.#.norm1.*", "model.layers.#.norm.norm.*", 2, 0},
                      {"body.layers.#.attention.query.*", "model.layers.#.layer.linears.0.*", 2, 0},
                      {"body.layers.#.attention.key.*", "model.layers.#.layer.linears.1.*", 2, 0},
                      {"body.layers.#.attention.value.*", "model.layers.#.layer.linears.2.*", 2, 0},
                      {"body.layers.#.attention.output.*", "model.layers.#.layer.linears.3.*", 2, 0},
                      {"body.layers.#.norm2.*", "model.layers.#.norm.norm.*", 2, 1},
                      {"body.layers.#.feed_forward.up.*", "model.layers.#.layer.ff.0.0.*", 2, 1},
                      {"body.layers.#.feed_forward.down.*", "model.layers.#.layer.ff.2.*", 2, 1},
                      {"body.final_norm.*", "model.norm.norm.*"}}});
}

/// README-transformer.md 2, MEGA.
NameTable mega_names() {
  return with_shell({{{"body.layers.#.norm1.*", "model.layers.#.layer.norm.norm.*"},
                      {"body.layers.#.norm2.*", "model.layers.#.layer.nffn.norm.norm.*"},
                      {"body.layers.#.ema.*", "model.layers.#.layer.ssm.*"},
                      {"body.layers.#.value.*", "model.layers.#.layer.v_proj.*"},
                      {"body.layers.#.gates.*", "model.layers.#.layer.mx_proj.*"},
                      {"body.layers.#.hidden.*", "model.layers.#.layer.h_proj.*"},
                      {"body.layers.#.query_key.scale", "model.layers.#.layer.gamma"},
                      {"body.layers.#.query_key.shift", "model.layers.#.layer.beta"},
                      {"body.layers.#.position_bias.weight", "model.layers.#.layer.rel_pos_bias.rel_pos_bias"},
                      {"body.layers.#.feed_forward.up.*", "model.layers.#.layer.nffn.layer.ff.0.0.*"},
                      {"body.layers.#.feed_forward.down.*", "model.layers.#.layer.nffn.layer.ff.2.*"}}});
}

/// README-ssm.md, "Parameter names": a state space model with the rows of its kernel.
NameTable state_space_names(const NameTable& kernel) {
  return with_shell({kernel,
                     {{"body.layers.#.ssm.D", "model.layers.#.layer.D"},
                      {"body.layers.#.output.*", "model.layers.#.layer.output_linear.0.*"},
                      {"body.layers.#.norm.*", "model.layers.#.norm.norm.*"},
                      {"body.final_norm.*", "model.norm.norm.*"}}});
}

NameTable s4_names() {
  return state_space_names({{"body.layers.#.ssm.log_dt", "model.layers.#.layer.kernel.kernel.log_dt"},
                            {"body.layers.#.ssm.inv_w_real", "model.layers.#.layer.kernel.kernel.inv_w_real"},
                            {"body.layers.#.ssm.w_imag", "model.layers.#.layer.kernel.kernel.w_imag"},
                            {"body.layers.#.ssm.P", "model.layers.#.layer.kernel.kernel.P"},
                            {"body.layers.#.ssm.B", "model.layers.#.layer.kernel.kernel.B"},
                            {"body.layers.#.ssm.C", "model.layers.#.layer.kernel.kernel.C"},
                            {"body.layers.#.ssm.kernel_length", "model.layers.#.layer.kernel.kernel.L"}});
}

NameTable s4d_names() {
  return state_space_names({{"body.layers.#.ssm.log_dt", "model.layers.#.layer.kernel.kernel.log_dt"},
                            {"body.layers.#.ssm.inv_w_real", "model.layers.#.layer.kernel.kernel.inv_A_real"},
                            {"body.layers.#.ssm.w_imag", "model.layers.#.layer.kernel.kernel.A_imag"},
                            {"body.layers.#.ssm.B", "model.layers.#.layer.kernel.kernel.B"},
                            {"body.layers.#.ssm.C", "model.layers.#.layer.kernel.kernel.C"}});
}

NameTable dlr_names() {
  return state_space_names({{"body.layers.#.ssm.lambda_sqrt_neg_real", "model.layers.#.layer.kernel.Lambda_log_neg_re"},
                            {"body.layers.#.ssm.lambda_imag", "model.layers.#.layer.kernel.Lambda_im"},
                            {"body.layers.#.ssm.W", "model.layers.#.layer.kernel.W"}});
}

NameTable dss_names() {
  return state_space_names({{"body.layers.#.ssm.log_dt", "model.layers.#.layer.kernel.log_dt"},
                            {"body.layers.#.ssm.lambda_log_neg_real", "model.layers.#.layer.kernel.Lambda_log_neg_re"},
                            {"body.layers.#.ssm.lambda_imag", "model.layers.#.layer.kernel.Lambda_im"},
                            {"body.layers.#.ssm.lambda", "model.layers.#.layer.kernel.Lambda"},
                            {"body.layers.#.ssm.W", "model.layers.#.layer.kernel.W"}});
}

/// GPTNeoXModel inside GPTNeoXForCausalLM and its like. A head of ours has no counterpart.
NameTable neox_names() {
  return {{.ours = "encoder.weight", .published = "gpt_neox.embed_in.weight", .use = NameUse::kTokenEncoder},
          {"body.layers.#.norm1.*", "gpt_neox.layers.#.input_layernorm.*"},
          {"body.layers.#.norm2.*", "gpt_neox.layers.#.post_attention_layernorm.*"},
          {"body.layers.#.attention.query.*", "gpt_neox.layers.#.attention.query_key_value.*", 1, 0, 0},
          {"body.layers.#.attention.key.*", "gpt_neox.layers.#.attention.query_key_value.*", 1, 0, 1},
          {"body.layers.#.attention.value.*", "gpt_neox.layers.#.attention.query_key_value.*", 1, 0, 2},
          {"body.layers.#.attention.output.*", "gpt_neox.layers.#.attention.dense.*"},
          {"body.layers.#.feed_forward.up.*", "gpt_neox.layers.#.mlp.dense_h_to_4h.*"},
          {"body.layers.#.feed_forward.down.*", "gpt_neox.layers.#.mlp.dense_4h_to_h.*"},
          {"body.final_norm.*", "gpt_neox.final_layer_norm.*"}};
}

struct NameSource {
  PublishedNames names;
  std::map<std::string, NameTable (*)()> tables;  ///< by architecture
  std::string prefix;                             ///< of every name that a body has; absent where the inner module was saved by itself
  /// Ends of names that a network of ours has no use for: tables of positions, masks, the output map of a language model.
  std::vector<std::string> carry_nothing;
};

const std::vector<NameSource>& name_sources() {
  static const std::vector<NameSource> kSources = {
      {{"gpt-neox", "Hugging Face transformers, GPTNeoXModel and what contains it (EleutherAI/pythia-70m-deduped)", {}},
       {{"pythia", neox_names}},
       "gpt_neox.",
       {".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq", "embed_out.weight", "lm_head.weight"}},
      {{"not-from-scratch", "github.com/IdoAmos/not-from-scratch, and the S4 family of github.com/state-spaces/s4", {}},
       {{"dlr", dlr_names},
        {"dss", dss_names},
        {"mega", mega_names},
        {"s4", s4_names},
        {"s4d", s4d_names},
        {"transformer", transformer_names}},
       "",
       {".pe", ".rope.freqs"}},
  };
  return kSources;
}

const NameSource& source_of(const PublishedNames& names) {
  for (const NameSource& source : name_sources())
    if (source.names.name == names.name) return source;
  SPT_CHECK(false, "no source of names '{}'", names.name);
}

NameTable table_of(const PublishedNames& names, const Architecture& architecture, const std::string& where) {
  const auto& tables = source_of(names).tables;
  const auto found = tables.find(architecture.name);
  if (found == tables.end())
    throw Error("{}: architecture '{}' has no names in {}; those that have: {}", where, architecture.name, names.name,
                fmt::join(names.architectures, ", "));
  return found->second();
}

bool carries_nothing(const PublishedNames& names, std::string_view published) {
  const auto& ends = source_of(names).carry_nothing;
  return std::any_of(ends.begin(), ends.end(), [&](const std::string& end) { return published.ends_with(end); });
}

/// What '#' and '*' stood for.
struct NameMatch {
  int64_t layer = 0;
  std::string rest;
};

std::optional<NameMatch> matched(std::string_view pattern, std::string_view name) {
  NameMatch match;
  while (!pattern.empty()) {
    if (pattern == "*") {
      if (name.empty() || name.find('.') != std::string_view::npos) return {};
      match.rest = name;
      return match;
    }
    if (pattern.front() == '#') {
      size_t digits = 0;
      while (digits < name.size() && digits < 9 && name[digits] >= '0' && name[digits] <= '9')
        match.layer = 10 * match.layer + (name[digits++] - '0');
      if (digits == 0) return {};
      name.remove_prefix(digits);
    } else {
      if (name.empty() || name.front() != pattern.front()) return {};
      name.remove_prefix(1);
    }
    pattern.remove_prefix(1);
  }
  if (!name.empty()) return {};
  return match;
}

std::string filled(std::string_view pattern, int64_t layer, const std::string& rest) {
  std::string name;
  for (const char c : pattern) name += c == '#' ? std::to_string(layer) : c == '*' ? rest : std::string(1, c);
  return name;
}

/// Name in ours of a published one, by one row.
std::optional<std::string> ours_by(const NameRow& row, const std::string& published) {
  const auto match = matched(row.published, published);
  if (!match || match->layer < row.offset || (match->layer - row.offset) % row.scale != 0) return {};
  return filled(row.ours, (match->layer - row.offset) / row.scale, match->rest);
}

std::optional<std::string> published_by(const NameRow& row, const std::string& ours) {
  const auto match = matched(row.ours, ours);
  if (!match) return {};
  return filled(row.published, row.scale * match->layer + row.offset, match->rest);
}

/// Rows of head h of a fused matrix are its query, key, value, d_k each: (3D, ..) -> part (D, ..).
at::Tensor part_of_fused(const at::Tensor& fused, int64_t part, int64_t n_heads, const std::string& where, const std::string& name) {
  if (fused.dim() == 0 || fused.size(0) % (3 * n_heads) != 0)
    throw Error("{}: tensor '{}' is {}, which is not query, key and value of {} heads", where, name, fmt::join(fused.sizes(), "x"),
                n_heads);
  return fused.unflatten(0, {n_heads, 3, fused.size(0) / (3 * n_heads)}).select(1, part).flatten(0, 1).contiguous();
}

at::Tensor fuse(const std::vector<at::Tensor>& parts, int64_t n_heads) {
  std::vector<at::Tensor> heads;
  for (const at::Tensor& part : parts) heads.push_back(part.unflatten(0, {n_heads, part.size(0) / n_heads}));
  return torch::stack(heads, 1).flatten(0, 2).contiguous();
}

int64_t heads_of(const OptionMap& options) {
  const auto found = options.find("n_heads");
  return found == options.end() ? 1 : std::get<int64_t>(found->second);
}

/// Parameters and buffers of the body, below "body.".
NamedTensors body_tensors(const Architecture& architecture, const OptionMap& options) {
  SPT_CHECK(architecture.build_body, "{} has no body of its own", architecture.name);
  const auto body = architecture.build_body(options, {.vocabulary = 2, .channels = 0, .max_length = 2}, 0);
  NamedTensors tensors;
  for (const auto& item : body->named_parameters()) tensors["body." + item.key()] = item.value();
  for (const auto& item : body->named_buffers()) tensors["body." + item.key()] = item.value();
  return tensors;
}

/// Every tensor of the body is there, of its shape, and no other.
void check_body(const Architecture& architecture, const OptionMap& options, NamedTensors& ours, const std::string& where) {
  const NamedTensors wanted = body_tensors(architecture, options);
  for (const auto& [name, want] : wanted) {
    const auto found = ours.find(name);
    if (found == ours.end()) throw Error("{}: tensor '{}' of architecture '{}' is missing", where, name, architecture.name);
    at::Tensor& tensor = found->second;
    if (tensor.sizes() != want.sizes() && tensor.dim() == want.dim() + 1 && tensor.size(-1) == 1) tensor = tensor.squeeze(-1);
    if (tensor.sizes() != want.sizes())
      throw Error("{}: tensor '{}' is {}, architecture '{}' with these options has {}", where, name, fmt::join(tensor.sizes(), "x"),
                  architecture.name, fmt::join(want.sizes(), "x"));
    if (tensor.is_floating_point() != want.is_floating_point())
      throw Error("{}: tensor '{}' is of type {}, architecture '{}' has {}", where, name, c10::toString(tensor.scalar_type()),
                  architecture.name, c10::toString(want.scalar_type()));
  }
  for (const auto& [name, tensor] : ours)
    if (name.starts_with("body.") && !wanted.contains(name))
      throw Error("{}: architecture '{}' with these options has no tensor '{}'", where, architecture.name, name);
}

bool is_retrieval(const NamedTensors& ours) {
  const auto hidden = ours.find("head.hidden.weight");
  return hidden != ours.end() && hidden->second.dim() == 2 && hidden->second.size(1) == 4 * hidden->second.size(0);
}

bool is_for(const NameRow& row, const NamedTensors& ours) {
  switch (row.use) {
    case NameUse::kAny:
      return true;
    case NameUse::kTokenEncoder:
      return !ours.contains("encoder.bias");
    case NameUse::kPlainHead:
      return !is_retrieval(ours);
    case NameUse::kRetrievalHead:
      return is_retrieval(ours);
  }
  SPT_CHECK(false, "use {}", static_cast<int>(row.use));
}

}  // namespace

const std::vector<PublishedNames>& published_names() {
  static const std::vector<PublishedNames> kNames = [] {
    std::vector<PublishedNames> all;
    for (const NameSource& source : name_sources()) {
      PublishedNames& names = all.emplace_back(source.names);
      for (const auto& [architecture, table] : source.tables) names.architectures.push_back(architecture);
    }
    return all;
  }();
  return kNames;
}

const PublishedNames& find_published_names(const std::string& name) {
  std::vector<std::string> known;
  for (const PublishedNames& names : published_names()) {
    if (names.name == name) return names;
    known.push_back(names.name);
  }
  throw Error("{}", unknown_name("source of names", name, known));
}

Renamed from_published(const PublishedNames& names, const Architecture& architecture, const OptionMap& options,
                       const NamedTensors& published, const std::vector<std::string>& drop, const std::string& where) {
  const NameTable table = table_of(names, architecture, where);
  const std::string& prefix = source_of(names).prefix;
  const bool bare = std::none_of(published.begin(), published.end(), [&](const auto& t) { return t.first.starts_with(prefix); });
  Renamed renamed;
  for (const auto& [name, tensor] : published) {
    const std::string full = bare ? prefix + name : name;
    const bool dropped = std::find(drop.begin(), drop.end(), name) != drop.end();
    bool known = false;
    for (const NameRow& row : table) {
      const auto ours = dropped ? std::nullopt : ours_by(row, full);
      if (!ours) continue;
      known = true;
      at::Tensor value = row.part < 0 ? tensor.clone() : part_of_fused(tensor, row.part, heads_of(options), where, name);
      if (!renamed.tensors.emplace(*ours, std::move(value)).second) throw Error("{}: tensor '{}' is there under two names", where, *ours);
      renamed.taken.emplace_back(name, *ours);
    }
    if (known) continue;
    if (!dropped && !carries_nothing(names, name))
      throw Error("{}: tensor '{}' is none that {} has for architecture '{}'; --drop {} leaves it out", where, name, names.name,
                  architecture.name, name);
    renamed.dropped.push_back(name);
  }
  for (const std::string& name : drop)
    if (!published.contains(name)) throw Error("{}: there is no tensor '{}' to drop", where, name);
  check_body(architecture, options, renamed.tensors, where);
  return renamed;
}

Renamed to_published(const PublishedNames& names, const Architecture& architecture, const OptionMap& options, const NamedTensors& ours,
                     const std::string& where) {
  const NameTable table = table_of(names, architecture, where);
  NamedTensors checked = ours;
  check_body(architecture, options, checked, where);
  Renamed renamed;
  std::map<std::string, std::map<int64_t, at::Tensor>> fused;
  for (const auto& [name, tensor] : checked) {
    const auto row =
        std::find_if(table.begin(), table.end(), [&, &of = name](const NameRow& r) { return is_for(r, checked) && published_by(r, of); });
    if (row == table.end()) {
      SPT_CHECK(!name.starts_with("body."), "{} has no name for {} of {}", names.name, name, architecture.name);
      renamed.dropped.push_back(name);
      continue;
    }
    const std::string published = *published_by(*row, name);
    renamed.taken.emplace_back(name, published);
    if (row->part < 0) renamed.tensors.emplace(published, tensor.clone());
    else fused[published][row->part] = tensor;
  }
  for (const auto& [published, parts] : fused) {
    SPT_CHECK(parts.size() == 3, "{} has {} parts of 3", published, parts.size());
    renamed.tensors.emplace(published, fuse({parts.at(0), parts.at(1), parts.at(2)}, heads_of(options)));
  }
  return renamed;
}

}  // namespace spt::models
