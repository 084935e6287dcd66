package app

import (
	"strconv"
	"strings"
	"unicode"
)

// oneLine is an error whose text takes one line, whatever the names and values
// of variables hold that it quotes.
type oneLine struct{ err error }

// Error gives the text, with what does not print as its escape.
func (e oneLine) Error() string {
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(e.err.Error(), "?") {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		}
	}
	return b.String()
}

// Unwrap gives the error itself.
func (e oneLine) Unwrap() error { return e.err }
