package shardrouter

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	defaultPort   = "3306"
	defaultHost   = "127.0.0.1"
	defaultSocket = "/tmp/mysql.sock"
)

// splitAddrs returns the addresses of a DSN's list as host:port, each once. An
// absent list is the driver's default address.
func splitAddrs(network, list string) ([]string, error) {
	if network == "unix" {
		return splitSocket(list)
	}
	if list == "" {
		list = defaultHost
	}
	var addrs []string
	seen := make(map[string]bool)
	for addr := range strings.SplitSeq(list, ",") {
		full, err := withPort(addr)
		if err != nil {
			return nil, err
		}
		id := nodeID(full)
		if seen[id] {
			return nil, fmt.Errorf("address %q stands twice in the list", full)
		}
		seen[id] = true
		addrs = append(addrs, full)
	}
	return addrs, nil
}

// splitSocket returns the one path of a socket: a host runs one server on it.
func splitSocket(path string) ([]string, error) {
	if path == "" {
		path = defaultSocket
	}
	if strings.Contains(path, ",") {
		return nil, fmt.Errorf("socket %q: a list of nodes needs tcp(host:3306,host:3306)", path)
	}
	return []string{path}, nil
}

// withPort returns addr as host:port, the host of IPv6 in brackets.
func withPort(addr string) (string, error) {
	host, port := addr, defaultPort
	if ip, err := netip.ParseAddr(strings.Trim(addr, "[]")); err == nil && wellBracketed(addr) {
		return net.JoinHostPort(ip.String(), port), nil
	}
	if strings.Contains(addr, ":") {
		var err error
		if host, port, err = net.SplitHostPort(addr); err != nil {
			return "", fmt.Errorf("address %q: want host, host:3306 or [2001:db8::1]:3306", addr)
		}
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n()[]") {
		return "", fmt.Errorf("address %q: want host, host:3306 or [2001:db8::1]:3306", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("address %q: want a port from 1 to 65535", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// wellBracketed reports whether s stands in one pair of square brackets or in
// none.
func wellBracketed(s string) bool {
	inner, opened := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	return opened == closed && !strings.ContainsAny(inner, "[]")
}

// nodeID is the same for two spellings of one address.
func nodeID(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return strings.ToLower(host) + ":" + strings.TrimLeft(port, "0")
}
