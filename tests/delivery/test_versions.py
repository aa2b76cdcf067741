# SPDX-License-Identifier: Apache-2.0
"""Each program says its version: test_versions.py VERSION PROGRAM..."""

import os
import subprocess
import sys
import unittest

VERSION, PROGRAMS = "", []
DAEMONS = ("vgpu-device-plugin", "vgpu-scheduler", "vgpu-monitor")


def say(program, flag):
    done = subprocess.run([program, flag], capture_output=True, text=True, check=False, timeout=20)
    return done.returncode, done.stdout, done.stderr


class Versions(unittest.TestCase):
    def test_each_program_says_its_version_and_nothing_else(self):
        for program in PROGRAMS:
            name = os.path.basename(program)
            said = VERSION if name in DAEMONS else "%s %s" % (name, VERSION)
            for flag in ("--version", "-V"):
                self.assertEqual(say(program, flag), (0, said + "\n", ""), "%s %s" % (program, flag))

    def test_daemons_have_it_in_their_help(self):
        for program in PROGRAMS:
            if os.path.basename(program) in DAEMONS:
                for flag in ("--help", "-h"):
                    code, out, err = say(program, flag)
                    self.assertEqual((code, err), (0, ""))
                    self.assertIn("--help, -h, --version, -V\n", out)


if __name__ == "__main__":
    VERSION, PROGRAMS = sys.argv[1], sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
