package sessionstore

import (
	"encoding/binary"
	"time"
)

// appendTime appends the seconds since 1970; then, in one number, the
// nanoseconds and whether a zone other than UTC follows; then that zone's
// offset and name. The monotonic clock is left out. Go does not tell the rules
// of a zone, so Europe/Berlin becomes the zone that it is at t: CEST, two hours
// east. Local times are no exception: an instance in another local zone reads
// them, and what it writes back must be the same.
func appendTime(buf []byte, t time.Time) []byte {
	buf = binary.AppendVarint(buf, t.Unix())
	nsec := uint64(t.Nanosecond()) << 1
	if t.Location() == time.UTC {
		return binary.AppendUvarint(buf, nsec)
	}
	buf = binary.AppendUvarint(buf, nsec|1)
	name, offset := t.Zone()
	buf = binary.AppendVarint(buf, int64(offset))
	return appendText(buf, name)
}

// time reads what appendTime wrote. A time in the zone that is the local one at
// that instant comes back as a local time.
func (r *reader) time() time.Time {
	sec, u := r.varint(), r.uvarint()
	nsec, zoned := u>>1, u&1 != 0
	if nsec >= uint64(time.Second) {
		r.fail()
		return time.Time{}
	}
	t := time.Unix(sec, int64(nsec))
	if !zoned {
		return t.UTC()
	}
	offset, name := r.int(), r.string()
	if localName, localOffset := t.Zone(); localName == name && localOffset == offset {
		return t
	}
	return t.In(time.FixedZone(name, offset))
}
