// Stop signals are kept until somebody asks, and interrupt no thread.
#include "lockstep/base/process.h"

#include <unistd.h>

#include <csignal>

#include "lockstep/base/errors.h"
#include "support/common.h"

namespace lockstep::stop_signal_test {

bool blocks_stop_signals() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 1 &&
         sigismember(&blocked, SIGUSR1) == 1;
}

class StopSignal : public testing::Test {
 protected:
  ~StopSignal() override {
    for (const int signal : {SIGINT, SIGUSR1}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(StopSignal, IsKeptForWhoAsksAndBlockedInThreadsMadeAfterwards) {
  ASSERT_FALSE(blocks_stop_signals());
  EXPECT_EQ(stop_signal(), "");
  std::signal(SIGINT, SIG_IGN);  // as shells do for what they start in the background
  const StopSignals signals;
  EXPECT_TRUE(blocks_stop_signals());
  std::jthread([] {
    EXPECT_TRUE(blocks_stop_signals());
    EXPECT_EQ(stop_signal(), "");
    EXPECT_NO_THROW(throw_if_stopped());
  }).join();
  ::kill(::getpid(), SIGINT);
  std::jthread([] { EXPECT_EQ(stop_signal(), "SIGINT"); }).join();
  ::kill(::getpid(), SIGTERM);
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(stop_signal(), "SIGINT") << "the first counts";
  try {
    throw_if_stopped();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitStopped);
  }
}

TEST_F(StopSignal, IsForgottenWithTheObjectThatKeepsIt) {
  std::signal(SIGUSR1, SIG_IGN);
  for (const int signal : {SIGUSR1, SIGTERM}) {
    {
      const StopSignals signals;
      ::kill(::getpid(), signal);
      EXPECT_EQ(stop_signal(), signal == SIGTERM ? "SIGTERM" : "SIGUSR1");
      ::kill(::getpid(), SIGTERM);  // nobody asks any more
    }
    EXPECT_EQ(stop_signal(), "");
    EXPECT_FALSE(blocks_stop_signals());
    EXPECT_EQ(std::signal(SIGUSR1, SIG_IGN), SIG_IGN) << "as it was before";
  }
}

}  // namespace lockstep::stop_signal_test
