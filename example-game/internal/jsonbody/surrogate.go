package jsonbody

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// hasHalfRune reports whether an escape \uXXXX in body is half of a surrogate
// pair without its other half. A backslash stands nowhere but in strings, so
// they need not be told apart; what is no JSON is left to the decoder.
func hasHalfRune(body []byte) bool {
	for {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			return false
		}
		body = body[i:]
		first, ok := escaped(body)
		if !ok {
			body = body[min(2, len(body)):]
			continue
		}
		body = body[6:]
		if !utf16.IsSurrogate(first) {
			continue
		}
		second, _ := escaped(body)
		if utf16.DecodeRune(first, second) == '\uFFFD' {
			return true
		}
		body = body[6:]
	}
}

// escaped returns the code unit of the escape \uXXXX that text begins with.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
