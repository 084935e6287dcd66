package sessionstore

import (
	"encoding/binary"
	"time"
)

// The zones of an encoded time. Anything else is malformed.
const (
	zoneUTC   = iota
	zoneLocal // then the offset and the name that it had
	zoneFixed // then the offset and the name
	zoneBits  = 2
)

// appendTime appends the seconds since 1970, then the nanoseconds and the kind
// of zone in one number, then the zone unless it is UTC. The monotonic clock is
// left out. Go does not tell the rules of a zone, so Europe/Berlin becomes the
// fixed zone that it is at t: CEST, two hours east.
func appendTime(buf []byte, t time.Time) []byte {
	zone := zoneFixed
	switch t.Location() {
	case time.UTC:
		zone = zoneUTC
	case time.Local:
		zone = zoneLocal
	}
	buf = binary.AppendVarint(buf, t.Unix())
	buf = binary.AppendUvarint(buf, uint64(t.Nanosecond())<<zoneBits|uint64(zone))
	if zone == zoneUTC {
		return buf
	}
	name, offset := t.Zone()
	buf = binary.AppendVarint(buf, int64(offset))
	return appendText(buf, name)
}

// time reads what appendTime wrote. A local time comes back as local where the
// local zone has the same name and offset at that instant, else in a zone with
// the name and offset that it had.
func (r *reader) time() time.Time {
	sec, u := r.varint(), r.uvarint()
	nsec, zone := u>>zoneBits, u&(1<<zoneBits-1)
	if nsec >= uint64(time.Second) || zone > zoneFixed {
		r.fail()
		return time.Time{}
	}
	t := time.Unix(sec, int64(nsec))
	if zone == zoneUTC {
		return t.UTC()
	}
	offset, name := int(r.varint()), r.string()
	if zone == zoneLocal {
		if n, o := t.Zone(); n == name && o == offset {
			return t
		}
	}
	return t.In(time.FixedZone(name, offset))
}
