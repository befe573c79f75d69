package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set when a release is built: -ldflags "-X main.release=1.2.3".
var release = "0.1.0-dev"

// version is one line: the release, the commit it was built from, the toolchain and the platform.
func version() string {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		commit = commitOf(info.Settings)
	}
	return fmt.Sprintf("eastguard %s (commit %s, %s, %s/%s)", release, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func commitOf(settings []debug.BuildSetting) string {
	commit, dirty := "unknown", ""
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	return commit + dirty
}
