package main

import (
	"io"
	"log/slog"

	"github.com/lmittmann/tint"

	"github.com/eastguard/eastguard/internal/config"
)

// newLogger writes to w in the form and from the level that cfg asks for.
func newLogger(cfg config.Config, w io.Writer, colour bool) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo // the settings table lists only levels that slog knows
	}
	switch {
	case cfg.LogFormat == "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	case colour:
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: "15:04:05.000"}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
