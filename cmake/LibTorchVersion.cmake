set(SPT_LIBTORCH_VERSION 2.13)  # the oldest that is accepted; scripts/setup pins the one it installs
