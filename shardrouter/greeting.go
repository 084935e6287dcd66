package shardrouter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// errGreeting: what listens at the address does not speak MySQL.
var errGreeting = errors.New("malformed greeting of the server")

const (
	packetHeader = 4       // length (3 bytes, little-endian) and number of a packet
	maxGreeting  = 1 << 12 // real ones have about a hundred bytes
	errPacket    = 0xff    // first byte of a server's refusal
	// afterVersion is the length of what follows the server's version: the
	// connection's id (4), half a salt (8), filler (1), capabilities (2),
	// character set (1), status (2), more capabilities (2), length of the salt
	// (1), reserved (10), the other half (13).
	afterVersion = 44
)

// readGreeting reads the first packet of a server and returns it as it came.
// The driver trusts the lengths in it and panics on a short one, so whatever is
// no greeting of a MySQL server is an error here.
func readGreeting(r io.Reader) ([]byte, error) {
	packet := make([]byte, packetHeader, 128)
	if _, err := io.ReadFull(r, packet); err != nil {
		return nil, err
	}
	length := int(packet[0]) | int(packet[1])<<8 | int(packet[2])<<16
	if length > maxGreeting {
		return nil, errGreeting
	}
	packet = append(packet, make([]byte, length)...)
	if _, err := io.ReadFull(r, packet[packetHeader:]); err != nil {
		return nil, err
	}
	if !validGreeting(packet[packetHeader:]) {
		return nil, errGreeting
	}
	return packet, nil
}

// threadIn is the number that a valid greeting gives the connection; 0: it is a
// refusal.
func threadIn(greeting []byte) uint32 {
	body := greeting[packetHeader:]
	if body[0] == errPacket {
		return 0
	}
	at := 1 + bytes.IndexByte(body[1:], 0) + 1
	return binary.LittleEndian.Uint32(body[at:])
}

// validGreeting reports whether the driver can read a first packet: a greeting
// of protocol 4.1, or a refusal.
func validGreeting(body []byte) bool {
	if len(body) < 3 {
		return false
	}
	if body[0] == errPacket {
		const withState = 9 // number (2), '#', SQL state (5)
		return len(body) > 3 && (body[3] != '#' || len(body) >= withState)
	}
	version := bytes.IndexByte(body[1:], 0)
	return version >= 0 && len(body) >= 1+version+1+afterVersion
}
