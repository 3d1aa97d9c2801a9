#include <torch/torch.h>

#include "models/layers/moving_average.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"

namespace spt::reference {

void mega_ema_case(Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const auto width = reader.get<int64_t>("d_model"), state = reader.get<int64_t>("d_state");
  models::MovingAverage ema(width, state, reader.get<bool>("bidirectional"));
  reader.finish();
  ema.to(c.type());
  load_strictly(ema, c.take("weight."), c.name());
  const at::Tensor x = c.input("x").requires_grad_();
  const at::Tensor y = ema.forward(x);
  c.compare_output("y", y);
  c.compare_output("kernel", ema.kernel(x.size(1)));
  compare_gradients(c, ema, y, {{"x", x}});
}

void mega_init_case(Case& c) {
  const auto& architecture = models::find_architecture("mega");
  const OptionMap options = body_options(c, architecture.name, c.options());
  if (std::get<int64_t>(options.at("n_layers")) != 1) throw Error("{}: the distributions are those of one layer", c.name());
  const auto body = architecture.build_body(options, {}, 0);
  body->to(torch::kFloat64);
  body->reset_parameters(Rng(1).stream("init"), "body.");
  compare_initial_values(c, *body, "layers.0.");
}

}  // namespace spt::reference
