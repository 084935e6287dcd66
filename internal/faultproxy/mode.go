package faultproxy

import "strconv"

// Mode says what the proxy does to connections.
type Mode int

// The modes. Package documentation has them as a table.
const (
	Pass            Mode = iota // forward everything
	Refuse                      // close the port; existing connections go on
	AcceptThenClose             // close new connections at once; existing ones go on
	Silent                      // keep connections open and answer nothing
	Freeze                      // keep connections open, move no byte until the mode changes
	Cut                         // reset existing connections and close the port
	Drop                        // like a lost network: swallow everything, tell neither side
)

var modeNames = [...]string{"pass", "refuse", "accept-then-close", "silent", "freeze", "cut", "drop"}

func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return "mode " + strconv.Itoa(int(m))
	}
	return modeNames[m]
}

// listens reports whether the port is open.
func (m Mode) listens() bool { return m != Refuse && m != Cut }

// mutes reports whether a connection accepted in the mode is never answered.
func (m Mode) mutes() bool { return m == Silent || m == Drop }

// fate is what becomes of something that one side sent.
type fate int

const (
	forward fate = iota
	wait
	swallow
)

// bytes returns the fate of bytes.
func (m Mode) bytes() fate {
	switch m {
	case Freeze:
		return wait
	case Silent, Drop:
		return swallow
	default:
		return forward
	}
}

// end returns the fate of the news that one side has closed its connection.
func (m Mode) end() fate {
	if m == Freeze || m == Drop {
		return wait
	}
	return forward
}
