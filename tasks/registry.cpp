#include <algorithm>

#include "tasks/task.h"

// One line a task, sorted: declares `Task <name>();` of tasks/<name>.cpp and lists it.
#define SPT_TASKS(X) \
  X(bidmc_hr)        \
  X(bidmc_rr)        \
  X(bidmc_spo2)      \
  X(fashion)         \
  X(image)           \
  X(listops)         \
  X(pathfinder32)    \
  X(pathx)           \
  X(pathx256)        \
  X(retrieval)       \
  X(scifar)          \
  X(speech)          \
  X(text)

namespace spt::tasks {

#define SPT_DECLARE(name) Task name();
SPT_TASKS(SPT_DECLARE)
#undef SPT_DECLARE

const char* split_name(Split split) {
  static constexpr const char* kNames[] = {"train", "validation", "test"};
  return kNames[static_cast<int>(split)];
}

const std::vector<Task>& tasks() {
  static const std::vector<Task> kTasks = [] {
    std::vector<Task> list;
#define SPT_LIST(name) list.push_back(name());
    SPT_TASKS(SPT_LIST)
#undef SPT_LIST
    for (size_t i = 1; i < list.size(); ++i) SPT_CHECK(list[i - 1].name < list[i].name, "tasks are not sorted at {}", list[i].name);
    return list;
  }();
  return kTasks;
}

const Task& find_task(const std::string& name) {
  const auto& all = tasks();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Task& t) { return t.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> known;
  for (const Task& t : all) known.push_back(t.name);
  throw Error("{}", unknown_name("task", name, known));
}

}  // namespace spt::tasks
