//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package shardrouter

// quiet cannot look at a socket here; a dead connection shows when it is used.
func quiet(uintptr, []byte) bool { return true }
