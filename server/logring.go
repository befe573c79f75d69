package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/eastguard/eastguard/internal/wire"
)

// What a node keeps of its log, for whoever asks over the network.
const (
	logLines     = 5000
	logBytes     = 4 << 20
	maxLogText   = 4 << 10 // of a message or a value; what is longer is cut
	maxLogAttrs  = 64
	logLineBytes = 96 // of a line without its text, about
)

// logRing is the last lines of this process's log. It never blocks whoever logs, and nothing in it logs.
type logRing struct {
	mu    sync.Mutex
	lines []wire.LogLine // by Seq, without holes
	start int            // of what is kept in lines
	bytes int
	next  uint64
	told  func() // something was added; called without the lock
}

func (l *logRing) add(line wire.LogLine) {
	l.mu.Lock()
	l.next++
	line.Seq = l.next
	l.lines = append(l.lines, line)
	l.bytes += lineSize(&line)
	for len(l.lines)-l.start > logLines || l.bytes > logBytes && len(l.lines)-l.start > 1 {
		l.bytes -= lineSize(&l.lines[l.start])
		l.lines[l.start] = wire.LogLine{}
		l.start++
	}
	if l.start > logLines {
		l.lines, l.start = slices.Clone(l.lines[l.start:]), 0
	}
	told := l.told
	l.mu.Unlock()
	if told != nil {
		told()
	}
}

func lineSize(l *wire.LogLine) int {
	n := logLineBytes + len(l.Message)
	for _, a := range l.Attrs {
		n += 32 + len(a.Key) + len(a.Value)
	}
	return n
}

// read puts into resp what fits of the lines that a request has not seen.
func (l *logRing) read(req *wire.WatchLogsRequest, resp *wire.WatchLogsResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.lines[l.start:]
	first := l.next + 1 - uint64(len(kept))
	from := max(req.From, 1)
	if from < first {
		if req.From > 0 {
			resp.Lost = first - from
		}
		from = first
	}
	from = min(from, l.next+1) // no number that is yet to come can have been seen
	level, contains := logLevelOf(req.Level), strings.ToLower(req.Contains)
	if req.From == 0 && req.Last > 0 {
		from = lastThatFit(kept, first, req.Last, level, contains)
	}
	size := 0
	resp.Next = from
	for i := from - first; i < uint64(len(kept)); i++ {
		line := &kept[i]
		if len(resp.Lines) >= req.MaxLines || size > maxWatchBytes {
			resp.More = true
			return
		}
		resp.Next = line.Seq + 1
		if fits(line, level, contains) {
			resp.Lines = append(resp.Lines, *line)
			size += lineSize(line)
		}
	}
}

// lastThatFit is the number of the first of the last n lines that fit.
func lastThatFit(kept []wire.LogLine, first uint64, n int, level slog.Level, contains string) uint64 {
	for i, line := range slices.Backward(kept) {
		if fits(&line, level, contains) {
			if n--; n == 0 {
				return first + uint64(i)
			}
		}
	}
	return first
}

func fits(line *wire.LogLine, level slog.Level, contains string) bool {
	if logLevelOf(line.Level) < level {
		return false
	}
	if contains == "" || strings.Contains(strings.ToLower(line.Message), contains) {
		return true
	}
	return slices.ContainsFunc(line.Attrs, func(a wire.LogAttr) bool {
		return strings.Contains(strings.ToLower(a.Key), contains) || strings.Contains(strings.ToLower(a.Value), contains)
	})
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logLevelOf reads a level; what is none lets everything pass.
func logLevelOf(name string) slog.Level {
	if l, ok := logLevels[name]; ok {
		return l
	}
	return slog.LevelDebug
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warn"
	case l >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}

// ringHandler keeps what is logged in a ring, and hands it on. From info on everything is kept, whatever the log itself
// leaves out.
type ringHandler struct {
	ring   *logRing
	next   slog.Handler
	attrs  []wire.LogAttr
	prefix string // of the groups
}

func (h *ringHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.next.Enabled(ctx, l)
}

func (h *ringHandler) Handle(ctx context.Context, r slog.Record) error {
	line := wire.LogLine{TimeMs: r.Time.UnixMilli(), Level: levelName(r.Level), Message: cutText(r.Message), Attrs: slices.Clip(h.attrs)}
	r.Attrs(func(a slog.Attr) bool {
		line.Attrs = appendAttr(line.Attrs, h.prefix, a)
		return len(line.Attrs) < maxLogAttrs
	})
	h.ring.add(line)
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *ringHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.next = h.next.WithAttrs(attrs)
	with.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		with.attrs = appendAttr(with.attrs, h.prefix, a)
	}
	return &with
}

func (h *ringHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.next = h.next.WithGroup(name)
	if name != "" {
		with.prefix += name + "."
	}
	return &with
}

// appendAttr adds an attribute as text, a group as its members.
func appendAttr(list []wire.LogAttr, prefix string, a slog.Attr) []wire.LogAttr {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range v.Group() {
			list = appendAttr(list, prefix, member)
		}
		return list
	}
	if a.Key == "" || len(list) >= maxLogAttrs {
		return list
	}
	return append(list, wire.LogAttr{Key: cutText(prefix + a.Key), Value: cutText(v.String())})
}

// cutText is text that can be sent: not too long, and valid UTF-8.
func cutText(s string) string {
	if len(s) > maxLogText {
		s = s[:maxLogText] + "…"
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
