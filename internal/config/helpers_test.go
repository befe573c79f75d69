package config

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func flagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	return fs
}

func TestHelpNamesEveryFlag(t *testing.T) {
	usage := flagSet().FlagUsages()
	for _, s := range Settings() {
		require.Contains(t, usage, "--"+s.Flag())
	}
	require.Contains(t, usage, "-c, --config string")
	require.Contains(t, usage, "(default 2921)")
	for line := range strings.Lines(usage) {
		require.LessOrEqual(t, strings.Count(line, "(default "), 1, line)
	}
}

func TestAdvertise(t *testing.T) {
	nic := func(cidrs ...string) func() ([]net.Addr, error) {
		return func() ([]net.Addr, error) {
			var addrs []net.Addr
			for _, c := range cidrs {
				ip, ipnet, err := net.ParseCIDR(c)
				require.NoError(t, err)
				addrs = append(addrs, &net.IPNet{IP: ip, Mask: ipnet.Mask})
			}
			return addrs, nil
		}
	}
	for _, tc := range []struct {
		name            string
		host, advertise string
		interfaces      func() ([]net.Addr, error)
		want, warning   string
		refused         string
	}{
		{name: "given", host: "0.0.0.0", advertise: "broker.example.org", want: "broker.example.org"},
		{name: "bound address", host: "10.0.0.5", want: "10.0.0.5"},
		{name: "loopback is fine when chosen", host: "127.0.0.1", want: "127.0.0.1"},
		{name: "first routable", host: "0.0.0.0", interfaces: nic("127.0.0.1/8", "169.254.1.1/16", "192.168.7.9/24", "10.0.0.1/8"), want: "192.168.7.9", warning: "others are told 192.168.7.9"},
		{name: "IPv4 first", host: "::", interfaces: nic("::1/128", "fe80::1/64", "2001:db8::7/64", "10.0.0.1/8"), want: "10.0.0.1", warning: "10.0.0.1"},
		{name: "IPv6 only", host: "::", interfaces: nic("::1/128", "fe80::1/64", "2001:db8::7/64"), want: "2001:db8::7", warning: "2001:db8::7"},
		{name: "unspecified advertise", host: "10.0.0.5", advertise: "0.0.0.0", interfaces: nic("10.0.0.5/8"), want: "10.0.0.5", warning: "10.0.0.5"},
		{name: "loopback only", host: "0.0.0.0", interfaces: nic("127.0.0.1/8"), refused: "host is 0.0.0.0, which cannot be told to others"},
		{name: "unspecified advertise, nothing to offer", host: "10.0.0.5", advertise: "::", interfaces: nic(), refused: "advertise_host is ::"},
		{name: "interfaces fail", host: "0.0.0.0", interfaces: func() ([]net.Addr, error) { return nil, errors.New("netlink: denied") }, refused: "netlink: denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Default()
			c.Host, c.AdvertiseHost = tc.host, tc.advertise
			host, warning, err := c.Advertise(tc.interfaces)
			if tc.refused != "" {
				require.ErrorContains(t, err, tc.refused)
				var e *base.Error
				require.ErrorAs(t, err, &e)
				require.Contains(t, e.HintText(), "set advertise_host")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, host)
			require.Contains(t, warning, tc.warning)
			require.Equal(t, tc.warning == "", warning == "")
		})
	}
}

func TestAddressesOfIPv6HostsAreBracketed(t *testing.T) {
	c := Default()
	c.Host, c.AdminPort = "::1", 0
	require.Equal(t, "[::1]:2921", c.ClientAddress())
	require.Equal(t, "[::1]:2922", c.ClusterAddress())
	require.Equal(t, "[::1]:2923", c.DataAddress())
	require.Empty(t, c.AdminAddress(), "switched off")
}

// Whatever the sources hold, Load neither panics nor accepts what it then cannot validate, and says what is
// wrong in one line.
func FuzzLoad(f *testing.F) {
	f.Add("client_port: 2921\nlabels: {a: b}\n", "LABELS=a=b", "--rack x")
	f.Add("a: &a [*a]\n", "HOST=::1", "--bootstrap")
	f.Add("join_seed_nodes: [a:1, b:2]\nbootstrap_expect: 2", "CLIENT_PORT=1e3", "-c x --config=y")
	f.Add("<<: {rack: a}\n", "EASTGUARD_SHARDS=0x20", "--labels=a=b --labels=c=d")
	f.Add("segment_size_limit_bytes: .5GiB\n? rack\n: !!binary aGk=\n", "BATCH_LINGER_MS=1µs", "--max-record-bytes=9e18")
	f.Fuzz(func(t *testing.T, file, env, args string) {
		c, sources, err := Load(strings.Fields(args), []string{env}, func(string) ([]byte, error) { return []byte(file), nil })
		if err != nil {
			var e *base.Error
			if !errors.As(err, &e) || e.Error() == "" || e.HintText() == "" {
				t.Fatalf("error without code or hint: %v", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(sources) != len(settings) {
			t.Fatalf("%d sources", len(sources))
		}
	})
}
