#include <torch/torch.h>

#include "models/architecture.h"
#include "models/layers/head.h"
#include "models/layers/linear.h"

namespace spt::models {
namespace {

/// encoder -> body -> head. Pads are hidden from the body where `mask_padding`; the head cuts rows by its own option.
class SequenceModel : public Model {
 public:
  SequenceModel(const Architecture& architecture, const ModelSpec& spec) : mask_padding_(spec.mask_padding) {
    const int64_t width = architecture.width(spec.options);
    if (spec.input.vocabulary > 0) embedding_ = register_module("encoder", std::make_shared<Embedding>(spec.input.vocabulary, width));
    else linear_ = register_module("encoder", std::make_shared<Linear>(spec.input.channels, width));
    body_ = register_module("body", architecture.build_body(spec.options, spec.input, spec.dropout));
    head_ = register_module("head", make_head(spec.head, width));
  }
  at::Tensor forward(const ModelInput& input) override {
    SPT_CHECK(input.tokens.defined() == (embedding_ != nullptr), "tokens for a model of values, or values for one of tokens");
    const at::Tensor x = embedding_ ? embedding_->forward(input.tokens) : linear_->forward(input.values.to(linear_->weight.scalar_type()));
    const at::Tensor real = mask_padding_ ? real_positions(input.lengths, x.size(1)) : at::Tensor();
    return head_->forward(body_->forward(x, real), input);
  }
  void reset_parameters(const Stream& init) override {
    const torch::NoGradGuard no_grad;
    if (embedding_) embedding_->reset_parameters(init, "encoder.");
    else linear_->reset_parameters(init, "encoder.");
    body_->reset_parameters(init, "body.");
    head_->reset_parameters(init, "head.");
  }
  ParameterRole role(const std::string& name) const override {
    constexpr std::string_view kBody = "body.";
    return name.starts_with(kBody) ? body_->role(name.substr(kBody.size())) : role_in_children(*this, name);
  }

 private:
  bool mask_padding_;
  std::shared_ptr<Embedding> embedding_;
  std::shared_ptr<Linear> linear_;
  std::shared_ptr<Body> body_;
  std::shared_ptr<Head> head_;
};

}  // namespace

at::Tensor real_positions(const at::Tensor& lengths, int64_t length) {
  if (!lengths.defined() || lengths.ge(length).all().item<bool>()) return {};
  return torch::arange(length, lengths.options()).unsqueeze(0) < lengths.unsqueeze(1);
}

at::Tensor Model::decode(const ModelInput&, int64_t) { SPT_CHECK(false, "this model does not decode"); }

std::shared_ptr<Model> build_model(const Architecture& architecture, const ModelSpec& spec) {
  SPT_CHECK((spec.input.vocabulary > 0) != (spec.input.channels > 0), "input of {} tokens and {} channels", spec.input.vocabulary,
            spec.input.channels);
  if (architecture.build_model) return architecture.build_model(spec);
  return std::make_shared<SequenceModel>(architecture, spec);
}

Flops model_flops(const Architecture& architecture, const ModelSpec& spec, int64_t length) {
  if (architecture.model_flops) return architecture.model_flops(spec, length);
  const int64_t width = architecture.width(spec.options);
  Flops flops = architecture.body_flops(spec.options, length);
  flops.per_example += 2.0 * static_cast<double>(length * spec.input.channels * width);  // embeddings are look-ups: 0
  if (spec.head.kind == "retrieval") flops.per_example *= 2;
  flops.per_example += head_flops(spec.head, width, length);
  return flops;
}

}  // namespace spt::models
