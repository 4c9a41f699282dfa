// SPDX-License-Identifier: BSD-3-Clause
//
// The examples are there to be compiled and linked; none is run.
int main() { return 0; }
