//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package shardrouter

import "syscall"

// quiet reports whether nothing waits to be read from a socket: neither the end
// of the connection nor anything else.
func quiet(fd uintptr, into []byte) bool {
	_, _, err := syscall.Recvfrom(int(fd), into, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
}
