"""What programs ask of clusters.

`matching` says which cluster each source and target of the deployments is at, `presence` what of a table is there,
`lag` how far a replica lags, `open_clusters` puts them together.
"""
