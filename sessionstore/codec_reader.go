package sessionstore

import "math"

// reader reads from text until something is bad, and zero values from then on.
type reader struct {
	types *typeTable

	text  string
	gobs  string // as encoder.gobs
	depth int
	bad   bool
}

func (r *reader) bool() bool {
	b := r.take(1)
	if b > "\x01" {
		r.fail()
	}
	return b == "\x01"
}

func (r *reader) int() int {
	n := r.varint()
	if n < math.MinInt || n > math.MaxInt {
		r.fail()
	}
	return int(n)
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	n := int64(u >> 1)
	if u&1 != 0 {
		n = ^n
	}
	return n
}

func (r *reader) uvarint() uint64 {
	u, n := cutUvarint(r.text)
	if n == 0 {
		r.fail()
		return 0
	}
	r.skip(n)
	return u
}

func (r *reader) float32() float32 { return math.Float32frombits(uint32(r.fixed(4))) }

func (r *reader) float64() float64 { return math.Float64frombits(r.fixed(8)) }

// fixed reads a number of n bytes, the lowest first.
func (r *reader) fixed(n int) (u uint64) {
	for i, b := range []byte(r.take(n)) {
		u |= uint64(b) << (8 * i)
	}
	return u
}

func (r *reader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.text)) {
		r.fail()
		return ""
	}
	return r.take(int(n))
}

// take reads n bytes.
func (r *reader) take(n int) string {
	if n > len(r.text) {
		r.fail()
		return ""
	}
	text := r.text[:n]
	r.skip(n)
	return text
}

func (r *reader) skip(n int) { r.text = r.text[n:] }

// fail makes all further reading fail.
func (r *reader) fail() {
	r.bad = true
	r.text = ""
}
