"""The always-on job: one query that captures for each source, one for each target, each kept up by itself.

Queries end and begin again; what they did is in the journal and the ledgers. What does not answer is tried again with
back-off while the process stays up. A target that is refused is told, and tried again while another one goes on; one
that is broken is left alone. The process ends when no target is left, or with capture.

`job` is the process around all parts, and `run` starts, keeps and ends them. `capture` and `target` are the two kinds
of parts that the kernel has, `supervisor` is what keeps each of them up, and `shared` what they need of the process and
of each other. `beginning` says where a journal begins.
"""
