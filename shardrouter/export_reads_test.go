package shardrouter

import "slices"

func OnlyReads(query string) bool { return onlyReads(query) }

// ReadingFunctions lists the functions that a read may call.
func ReadingFunctions() []string {
	var names []string
	for name := range readingFunctions.words {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
