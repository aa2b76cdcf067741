#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searches the models of this folder; skips, and says so, without spin.
exec "$(dirname "$0")/../../tools/check_models.sh"
