// Runs with asynchronous workers, of every kind.
#pragma once

#include "support/common.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::test {

/// A run whose workers have as many replicas each as there are.
inline Config config_for(const Communicator& comm, Index servers, ServerMode mode) {
  Config config = tiny_config("distribute.strategy=parameter_server; distribute.reduction=native");
  config.distribute.servers = servers;
  config.distribute.mode = mode;
  config.train.replicas = comm.size() - servers;
  config.train.global_batch = 5 * config.train.replicas;
  return config;
}

struct AsynchronousCase {
  std::string name;
  ServerMode mode = ServerMode::kAsync;
  Index backup_workers = 0;
};

inline const std::vector<AsynchronousCase>& cases() {
  static const std::vector<AsynchronousCase> kCases{{"async", ServerMode::kAsync},
                                                    {"bounded", ServerMode::kBounded},
                                                    {"backup workers", ServerMode::kSync, 1}};
  return kCases;
}

/// Every case with one to three servers, wherever there are workers enough. Of more than four ranks, each
/// pair of ranks, servers and case.
inline void walk(const std::function<void(Communicator&, const AsynchronousCase&, Config)>& body) {
  on_ranks([&](Communicator& comm) {
    for (std::size_t i = 0; i < cases().size(); ++i) {
      const AsynchronousCase& one = cases()[i];
      for (const Index servers : {1, 2, 3}) {
        if (comm.size() - servers <= one.backup_workers) continue;
        const bool pair = (static_cast<std::size_t>(comm.size() + servers) + i) % cases().size() == 0;
        if (comm.size() > 4 && !pair) continue;
        SCOPED_TRACE(one.name + ", " + std::to_string(servers) + " servers of " +
                     std::to_string(comm.size()));
        Config config = config_for(comm, servers, one.mode);
        config.distribute.backup_workers = one.backup_workers;
        body(comm, one, config);
      }
    }
  });
}

}  // namespace lockstep::test
