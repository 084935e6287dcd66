package shardrouter

// What a name has to look like, in words for an error.
const (
	nameForm  = "a lower-case letter and at most 31 more of a-z, 0-9 and _"
	groupForm = "1 to 64 of letters, digits, '.', '_' and '-'"
	dsnForm   = "user:password@tcp(host:3306)/database"
)

// isName reports whether s is the name of a shard. Such a name goes unescaped
// into Redis keys, variables, headers and metric labels.
func isName(s string) bool {
	if len(s) < 1 || len(s) > 32 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// isGroup reports whether s is the name of a group.
func isGroup(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if !isWord(string(c)) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
