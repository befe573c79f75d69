package main

import (
	"encoding/hex"
	"os"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// clusterKey reads the key of the membership. A file that others may read is refused: it would be no secret.
func clusterKey(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	const op = "read cluster_key_file"
	info, err := os.Stat(name)
	if err != nil {
		return nil, base.Wrap(base.CodeInvalidArgument, op, err).WithHint("make one with: (umask 077; openssl rand -hex 32 > %s)", name)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 {
		return nil, base.Errorf(base.CodeInvalidArgument, op, "%s can be read by others (mode %04o)", name, info.Mode().Perm()).
			WithHint("chmod 600 %s", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, base.Wrap(base.CodeInvalidArgument, op, err).WithHint("check the file's owner")
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if n := len(key); err != nil || n != 16 && n != 24 && n != 32 {
		return nil, base.Errorf(base.CodeInvalidArgument, op, "%s does not hold 32, 48 or 64 hexadecimal digits", name).
			WithHint("make one with: (umask 077; openssl rand -hex 32 > %s)", name)
	}
	return key, nil
}
