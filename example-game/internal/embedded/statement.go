package embedded

import (
	"regexp"
	"strings"
)

var (
	leadingComments = regexp.MustCompile(`^(\s+|/\*[^!+](?s:.*?)\*/|--\s[^\n]*\n|#[^\n]*\n)+`)
	mentionsTable   = regexp.MustCompile(`(?i)\b(from|into|table)\b`)
	showsVariables  = regexp.MustCompile(`(?i)^show\s+((global|session)\s+)?(variables|status|warnings|errors)\b`)
)

// touchesTables reports whether a statement may read or write a table, and so
// has to pass the gate. In doubt it says yes.
func touchesTables(query string) bool {
	query = leadingComments.ReplaceAllString(query, "")
	verb, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(query)), " ")
	switch verb {
	case "select":
		return mentionsTable.MatchString(rest)
	case "set":
		// SET @a = (SELECT ... FROM t) reads a table.
		return mentionsTable.MatchString(rest)
	case "show":
		return !showsVariables.MatchString(query)
	}
	return true
}
