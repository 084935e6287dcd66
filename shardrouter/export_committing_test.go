package shardrouter

func BreaksTransaction(query string, several bool) bool { return breaksTransaction(query, several) }
func MayCommit(query string, several bool) bool         { return mayCommit(query, several) }

func SetsForeignText(query string) bool { return setsForeignText(query) }
