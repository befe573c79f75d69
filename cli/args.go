package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/cli/script"
)

func argsBetween(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s needs %s more", cmd.CommandPath(), plural(int64(least-len(args)), "argument")).
				WithHint("usage: %s", cmd.UseLine())
		case most == 0 && len(args) > 0:
			return usagef("%s takes no arguments, but %q was given", cmd.CommandPath(), args[0]).WithHint("usage: %s", cmd.UseLine())
		case len(args) > most:
			return usagef("%s takes at most %s, %d were given", cmd.CommandPath(), plural(int64(most), "argument"), len(args)).
				WithHint("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

func argsAtLeast(least int) cobra.PositionalArgs { return argsBetween(least, 1<<20) }

// unescapeText reads \n \t \r \0 \\ \" \xHH and \uHHHH in a flag's value.
func unescapeText(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		text, n, err := script.Unescape(s[i:])
		if err != nil {
			return "", usagef("%v", err)
		}
		b.WriteString(text)
		i += n - 1
	}
	return b.String(), nil
}
