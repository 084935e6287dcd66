package faultproxy

import "slices"

// FirstMatch feeds chunks to a history and returns the index of the chunk in
// which match first ends, -1 for none.
func FirstMatch(match []byte, chunks [][]byte) int {
	var sent history
	return slices.IndexFunc(chunks, func(chunk []byte) bool {
		defer sent.add(chunk)
		return sent.completes(chunk, match)
	})
}
