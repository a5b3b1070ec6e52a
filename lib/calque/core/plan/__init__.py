"""Plans: the cheapest chain of hops between states that the source had. `problem` states what is to be planned, `edges`
says which operation leads from one state to another, `search` finds the cheapest way, and `operations` are made of its
edges."""
