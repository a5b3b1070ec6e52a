"""The composition root: the plugins that calque has, with what each registers (`extension`)."""

from __future__ import annotations

from calque.extension import App
from calque.plugins.audit.plugin import PLUGIN as AUDIT
from calque.plugins.clusters.plugin import PLUGIN as CLUSTERS
from calque.plugins.delta_replicas.plugin import PLUGIN as DELTA_REPLICAS
from calque.plugins.dumps.plugin import PLUGIN as DUMPS
from calque.plugins.grants.plugin import PLUGIN as GRANTS
from calque.plugins.hdfs.plugin import PLUGIN as HDFS
from calque.plugins.kafka.plugin import PLUGIN as KAFKA
from calque.plugins.marks.plugin import PLUGIN as MARKS
from calque.plugins.notices.plugin import PLUGIN as NOTICES
from calque.plugins.page.plugin import PLUGIN as PAGE
from calque.plugins.remotes.plugin import PLUGIN as REMOTES
from calque.plugins.s3.plugin import PLUGIN as S3

APP = App((KAFKA, MARKS, DUMPS, REMOTES, AUDIT, CLUSTERS, DELTA_REPLICAS, NOTICES, GRANTS, PAGE, HDFS, S3))
"""The app with all plugins. Their order here is the order of their statements in the help, and of their findings in
`check`. A statement that fits none of the forms is offered to the plugins in this order, too."""
