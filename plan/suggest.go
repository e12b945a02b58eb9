package plan

// Suggest finds the name that was probably meant: the nearest one by edit
// distance (a swap of neighbours counts once), if it is near enough for the
// name's length. Of equals the first wins, so the caller's order decides.
func Suggest(given string, names []string) string {
	best, bestDistance := "", 1+max(1, min(3, len(given)/3))
	for _, name := range names {
		if name == given {
			continue
		}
		if d := EditDistance(given, name, bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// EditDistance is the optimal string alignment distance, or limit when it is
// not below it.
func EditDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return min(last[len(b)], limit)
}
