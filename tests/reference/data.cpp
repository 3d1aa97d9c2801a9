#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "tasks/formats/cifar.h"
#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/png.h"
#include "tasks/formats/split.h"
#include "tasks/formats/tokenize.h"
#include "tasks/formats/tsv.h"
#include "tasks/formats/vocabulary.h"
#include "tests/reference/handlers.h"

// Handlers of tokenizers, preprocessing and splits: what tasks/formats does, without LibTorch.
namespace spt::reference {
namespace {

using Tokens = std::vector<std::string>;

std::vector<std::string> text_list(const Case& c, const char* key) {
  if (!c.json().contains(key)) throw Error("{}: case.json has no '{}'", c.name(), key);
  return c.json().at(key).get<std::vector<std::string>>();
}

/// Counts over the training rows, each cut to max_length - 1 tokens as encoding cuts it.
formats::Vocabulary case_vocabulary(const std::vector<Tokens>& rows, int64_t max_length, int64_t min_count) {
  std::map<std::string, int64_t> counts;
  for (const Tokens& row : rows)
    for (size_t i = 0; i < row.size() && static_cast<int64_t>(i) < max_length - 1; ++i) ++counts[row[i]];
  return formats::Vocabulary::from_counts(counts, min_count);
}

void compare_encoded(Case& c, const formats::Vocabulary& vocabulary, const std::vector<Tokens>& rows, int64_t max_length) {
  c.compare_text_output("vocabulary", vocabulary.tokens());
  std::vector<std::vector<int64_t>> ids;
  std::vector<int64_t> lengths;
  for (const Tokens& row : rows) {
    ids.push_back(vocabulary.encode(row, max_length));
    lengths.push_back(static_cast<int64_t>(ids.back().size()));
  }
  const at::Tensor table =
      torch::full({static_cast<int64_t>(ids.size()), *std::max_element(lengths.begin(), lengths.end())}, formats::kPadId, torch::kInt64);
  for (size_t i = 0; i < ids.size(); ++i)
    table[static_cast<int64_t>(i)].narrow(0, 0, lengths[i]).copy_(torch::tensor(ids[i], torch::kInt64));
  c.compare_output("ids", table);
  c.compare_output("lengths", torch::tensor(lengths, torch::kInt64));
}

Tokens characters(const std::string& text, const std::string& where) {
  Tokens tokens;
  for (const char32_t point : formats::code_points(text, where)) tokens.push_back(formats::to_utf8(point));
  return tokens;
}

/// The case's images as the file that holds them: a label, then the three planes.
formats::ImageSet images_through_the_file_format(const at::Tensor& images, const at::Tensor& labels, const std::string& where) {
  std::string bytes;
  const at::Tensor planes = images.contiguous();
  for (int64_t i = 0; i < planes.size(0); ++i) {
    bytes += static_cast<char>(labels[i].item<int64_t>());
    bytes.append(reinterpret_cast<const char*>(planes[i].const_data_ptr<uint8_t>()), formats::kCifarRecordBytes - 1);
  }
  return formats::parse_cifar(bytes, where);
}

void compare_image_values(Case& c, const formats::ImageSet& images, const formats::PixelScaling& scaling) {
  const formats::ImageSteps steps(images.channels, images.height, images.width, {}, scaling, c.name());
  std::vector<at::Tensor> rows;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < images.n; ++i) {
    rows.push_back(torch::tensor(steps.steps(images.image(i))).view({steps.length(), steps.width()}));
    labels.push_back(images.labels[i]);
  }
  const at::Tensor values = torch::stack(rows), exact = values.to(torch::kFloat64);
  if (c.has("output.values")) c.compare_output("values", values);
  c.compare_output("first64", values.flatten(1).narrow(1, 0, 64));
  c.compare_output("sum", exact.sum({1, 2}));
  c.compare_output("sum_of_squares", exact.square().sum({1, 2}));
  if (c.has("output.sum_per_channel")) c.compare_output("sum_per_channel", exact.sum(1));
  c.compare_output("label", torch::tensor(labels, torch::kInt64));
}

formats::ImageSet case_images(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  options.get<std::string>("file");  // where the stored pixels come from
  options.get<std::vector<int64_t>>("indices");
  options.finish();
  return images_through_the_file_format(c.input("image"), c.tensor("output.label"), c.name());
}

void compare_piece(Case& c, const std::string& name, const std::vector<int64_t>& indices) {
  constexpr int64_t kModulus = 1000000007;
  int64_t checksum = 0;
  for (size_t i = 0; i < indices.size(); ++i) checksum = (checksum + static_cast<int64_t>(i) * indices[i]) % kModulus;
  const at::Tensor all = torch::tensor(indices, torch::kInt64);
  c.compare_output(name + ".first", all.narrow(0, 0, std::min<int64_t>(50, all.size(0))));
  c.compare_output(name + ".count", torch::tensor(all.size(0), torch::kInt64));
  c.compare_output(name + ".checksum", torch::tensor(checksum, torch::kInt64));
}

}  // namespace

void listops_tokenizer_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto max_length = options.get<int64_t>("l_max");
  options.finish();
  std::vector<Tokens> rows;
  std::vector<int64_t> labels;
  for (const std::string& line : text_list(c, "lines")) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) throw Error("{}: a line without a tab: '{}'", c.name(), line);
    labels.push_back(std::stoll(line.substr(0, tab)));
    rows.push_back(formats::listops_tokens(line.substr(tab + 1)));
  }
  compare_encoded(c, case_vocabulary(rows, max_length, 1), rows, max_length);
  c.compare_output("labels", torch::tensor(labels, torch::kInt64));
}

void text_tokenizer_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto max_length = options.get<int64_t>("l_max"), min_count = options.get<int64_t>("min_freq");
  options.finish();
  const auto rows_of = [&](const char* key) {
    std::vector<Tokens> rows;
    for (const std::string& text : text_list(c, key)) rows.push_back(characters(text, c.where(key)));
    return rows;
  };
  compare_encoded(c, case_vocabulary(rows_of("train_texts"), max_length, min_count), rows_of("texts"), max_length);
}

void retrieval_tokenizer_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto max_length = options.get<int64_t>("l_max");
  const auto min_count = options.get<int64_t>("min_freq", 1);
  options.finish();
  std::vector<Tokens> first, second;
  std::vector<int64_t> labels;
  formats::TsvReader reader(c.where("tsv"), int64_t{1} << 20, [&](int64_t line, std::span<const std::string> fields) {
    if (fields.size() != 5) throw Error("{}: line {} of tsv has {} fields", c.name(), line, fields.size());
    labels.push_back(std::stoll(fields[0]));
    first.push_back(characters(fields[3], c.where("tsv")));
    second.push_back(characters(fields[4], c.where("tsv")));
  });
  reader.feed(c.json().at("tsv").get<std::string>());
  reader.finish();
  const auto texts_of = [&](const char* key, const std::vector<Tokens>& rows) {
    std::vector<Tokens> wanted;
    for (const std::string& text : text_list(c, key)) wanted.push_back(characters(text, c.where(key)));
    c.check(key, rows == wanted, "the file gives other texts");
  };
  texts_of("texts1", first);
  texts_of("texts2", second);
  std::vector<Tokens> stacked = first;
  stacked.insert(stacked.end(), second.begin(), second.end());
  compare_encoded(c, case_vocabulary(stacked, max_length, min_count), stacked, max_length);
  c.compare_output("labels", torch::tensor(labels, torch::kInt64));
}

void grey_image_case(Case& c) { compare_image_values(c, formats::to_grey(case_images(c)), formats::cifar_grey_scaling()); }

void rgb_image_case(Case& c) { compare_image_values(c, case_images(c), formats::cifar_rgb_scaling()); }

void pathfinder_preprocess_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto level = options.get<std::string>("level");
  options.finish();
  std::map<std::string, std::string> metadata;
  for (const auto& [name, text] : c.json().at("metadata").items()) metadata[name] = text.get<std::string>();
  std::vector<std::string> files;
  std::vector<int64_t> labels;
  for (const formats::PathfinderSample& sample : formats::pathfinder_samples(metadata, level, c.name())) {
    files.push_back(sample.file);
    labels.push_back(sample.label);
  }
  c.compare_text_output("samples", files);
  c.compare_output("labels", torch::tensor(labels, torch::kInt64));
  const at::Tensor pixels = c.input("image").contiguous();
  formats::Picture picture{.height = pixels.size(0), .width = pixels.size(1), .channels = 1, .pixels = {}};
  picture.pixels.assign(pixels.const_data_ptr<uint8_t>(), pixels.const_data_ptr<uint8_t>() + pixels.numel());
  picture = formats::decode_grey_png(formats::encode_png(picture), 256, c.name());
  const formats::ImageSteps steps(1, picture.height, picture.width, {}, formats::pathfinder_scaling(), c.name());
  c.compare_output("values", torch::tensor(steps.steps(picture.pixels)).view({steps.length(), steps.width()}));
}

void random_split_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto n = options.get<int64_t>("n");
  const auto validation = options.get<double>("val_split");
  const auto seed = static_cast<uint32_t>(options.get<int64_t>("seed"));
  if (options.has("test_split")) {
    const auto part = [&](double share) { return static_cast<int64_t>(share * static_cast<double>(n)); };
    const int64_t n_validation = part(validation), n_test = part(options.get<double>("test_split"));
    const auto pieces = formats::random_split(n, std::vector<int64_t>{n - n_validation - n_test, n_validation, n_test}, seed);
    compare_piece(c, "train", pieces[0]);
    compare_piece(c, "val", pieces[1]);
    compare_piece(c, "test", pieces[2]);
  } else {
    const formats::TwoSplits pieces = formats::random_split(n, validation, seed);
    compare_piece(c, "train", pieces.train);
    compare_piece(c, "val", pieces.validation);
  }
  options.finish();
}

void train_fraction_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto n = options.get<int64_t>("n");
  const auto seed = static_cast<uint32_t>(options.get<int64_t>("seed"));
  std::vector<int64_t> train(static_cast<size_t>(n));
  std::iota(train.begin(), train.end(), 0);
  if (options.has("val_split"))
    train = formats::random_split(n, options.get<double>("val_split"), static_cast<uint32_t>(options.get<int64_t>("split_seed"))).train;
  for (const nlohmann::json& fraction : options.get<nlohmann::json::array_t>("fractions")) {
    if (!fraction.is_number()) throw Error("{}: options.fractions holds {}", c.name(), fraction.dump());
    compare_piece(c, "fraction_" + fraction.dump(), formats::train_fraction(train, fraction.get<double>(), seed));
  }
  options.finish();
}

void two_stage_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto n = options.get<int64_t>("n");
  const auto seed = static_cast<uint32_t>(options.get<int64_t>("seed"));
  const auto outer = options.get<double>("test_size"), inner = options.get<double>("second_test_size");
  options.finish();
  const formats::ThreeSplits pieces = formats::two_stage_split(n, outer, inner, seed);
  compare_piece(c, "train", pieces.train);
  compare_piece(c, "val", pieces.validation);
  compare_piece(c, "test", pieces.test);
}

}  // namespace spt::reference
