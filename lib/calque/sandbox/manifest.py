"""The published artifacts that the servers and Spark's class path need, in versions that were run together."""

from calque.sandbox.artifacts import Artifact


def artifacts(listing: str) -> tuple[Artifact, ...]:
    """Return the artifacts of a listing of coordinates, with white space between them."""
    return tuple(Artifact.parse(line) for line in listing.split())


HIVE_3_DISTRIBUTION = Artifact.parse("org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin")
"""The 3.1.3 server's jars and its database schemas."""

HIVE_4_SCHEMAS = Artifact.parse("org.apache.hive:hive-standalone-metastore-server:4.0.1:tar.gz:bin")
"""The newest published archive with the 4.x database schemas; nothing else of it is used."""

HIVE_3_JARS = artifacts("""
    org.apache.hive.hcatalog:hive-hcatalog-server-extensions:3.1.3
    org.codehaus.jackson:jackson-core-asl:1.9.13
    org.codehaus.jackson:jackson-mapper-asl:1.9.13
    org.slf4j:slf4j-api:1.7.30
    commons-collections:commons-collections:3.2.2
    commons-logging:commons-logging:1.1.3
    org.postgresql:postgresql:42.7.4
""")
"""Jars that the distribution and pyspark's Hadoop client lack."""

HIVE_4_JARS = artifacts("""
    org.apache.hive:hive-exec:4.2.0
    org.apache.hive.hcatalog:hive-hcatalog-server-extensions:4.2.0
    org.apache.hadoop:hadoop-hdfs:3.5.0
    org.postgresql:postgresql:42.7.4
    org.datanucleus:datanucleus-core:6.0.10
    org.datanucleus:datanucleus-api-jdo:6.0.3
    org.datanucleus:datanucleus-rdbms:6.0.10
    org.datanucleus:javax.jdo:3.2.0-release
    com.zaxxer:HikariCP:4.0.3
    org.springframework:spring-core:5.3.39
    org.springframework:spring-jcl:5.3.39
    org.springframework:spring-beans:5.3.39
    org.springframework:spring-tx:5.3.39
    org.springframework:spring-jdbc:5.3.39
    org.slf4j:slf4j-api:1.7.30
    org.apache.logging.log4j:log4j-api:2.24.3
    org.apache.logging.log4j:log4j-core:2.24.3
    org.apache.logging.log4j:log4j-slf4j-impl:2.24.3
    org.apache.logging.log4j:log4j-1.2-api:2.24.3
    commons-logging:commons-logging:1.1.3
    commons-cli:commons-cli:1.5.0
    commons-codec:commons-codec:1.15
    com.esri.geometry:esri-geometry-api:2.2.4
    org.apache.commons:commons-math3:3.6.1
    commons-io:commons-io:2.16.1
    commons-beanutils:commons-beanutils:1.11.0
    commons-collections:commons-collections:3.2.2
    org.apache.commons:commons-collections4:4.4
    org.apache.commons:commons-dbcp2:2.12.0
    org.apache.commons:commons-pool2:2.12.0
    org.apache.commons:commons-jexl3:3.3
    com.github.ben-manes.caffeine:caffeine:2.8.4
    io.dropwizard.metrics:metrics-core:3.1.0
    io.dropwizard.metrics:metrics-jvm:3.1.0
    io.dropwizard.metrics:metrics-json:3.1.0
    com.github.joshelser:dropwizard-metrics-hadoop-metrics2-reporter:0.1.2
    org.apache.curator:curator-framework:5.7.1
    org.apache.curator:curator-client:5.7.1
    org.apache.curator:curator-recipes:5.7.1
    org.apache.zookeeper:zookeeper:3.8.4
    javolution:javolution:5.5.1
    org.antlr:antlr-runtime:3.5.2
    org.antlr:antlr4-runtime:4.9.3
    com.google.guava:guava:22.0
    com.google.protobuf:protobuf-java:3.25.5
    com.fasterxml.jackson.core:jackson-databind:2.16.1
    com.fasterxml.jackson.core:jackson-core:2.16.1
    com.fasterxml.jackson.core:jackson-annotations:2.16.1
    org.eclipse.jetty:jetty-server:9.4.57.v20241219
    org.eclipse.jetty:jetty-servlet:9.4.57.v20241219
    org.eclipse.jetty:jetty-util:9.4.57.v20241219
    org.eclipse.jetty:jetty-http:9.4.57.v20241219
    org.eclipse.jetty:jetty-io:9.4.57.v20241219
    org.eclipse.jetty:jetty-security:9.4.57.v20241219
    javax.servlet:javax.servlet-api:3.1.0
    org.pac4j:pac4j-core:4.5.8
    com.nimbusds:nimbus-jose-jwt:9.37.4
    com.github.stephenc.jcip:jcip-annotations:1.0-1
    org.apache.httpcomponents:httpcore:4.4.15
    org.apache.httpcomponents:httpclient:4.5.13
    org.apache.thrift:libfb303:0.9.3
    com.google.code.gson:gson:2.11.0
    javax.transaction:javax.transaction-api:1.3
""")
"""The jars of the 4.2.0 server, as a flat list, because what hive-exec asks for transitively can't be resolved on Java
17 (`jdk.tools`)."""

DELTA_JARS = artifacts("""
    io.delta:delta-spark_4.2_2.13:4.4.0
    io.delta:delta-storage:4.4.0
    io.delta:delta-kernel-api:4.4.0
    io.delta:delta-kernel-defaults:4.4.0
    io.delta:delta-kernel-unitycatalog:4.4.0
    io.unitycatalog:unitycatalog-hadoop:0.6.0
""")
"""Jars that Delta needs and pyspark lacks; a second Hadoop client or Jackson would break the session."""

KAFKA_JARS = artifacts("""
    org.apache.kafka:kafka_2.13:4.3.1
    org.apache.kafka:kafka-clients:4.3.1
    org.apache.kafka:kafka-coordinator-common:4.3.1
    org.apache.kafka:kafka-group-coordinator:4.3.1
    org.apache.kafka:kafka-group-coordinator-api:4.3.1
    org.apache.kafka:kafka-metadata:4.3.1
    org.apache.kafka:kafka-raft:4.3.1
    org.apache.kafka:kafka-server:4.3.1
    org.apache.kafka:kafka-server-common:4.3.1
    org.apache.kafka:kafka-share-coordinator:4.3.1
    org.apache.kafka:kafka-storage:4.3.1
    org.apache.kafka:kafka-storage-api:4.3.1
    org.apache.kafka:kafka-tools-api:4.3.1
    org.apache.kafka:kafka-transaction-coordinator:4.3.1
    org.scala-lang:scala-library:2.13.18
    org.scala-lang:scala-reflect:2.13.18
    com.typesafe.scala-logging:scala-logging_2.13:3.9.6
    com.fasterxml.jackson.core:jackson-annotations:2.21
    com.fasterxml.jackson.core:jackson-core:2.21.2
    com.fasterxml.jackson.core:jackson-databind:2.21.2
    com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.21.2
    com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.21.2
    com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2
    org.yaml:snakeyaml:2.5
    com.github.luben:zstd-jni:1.5.6-10
    at.yawk.lz4:lz4-java:1.10.2
    org.xerial.snappy:snappy-java:1.1.10.7
    com.github.ben-manes.caffeine:caffeine:3.2.0
    com.dynatrace.hash4j:hash4j:0.22.0
    com.google.re2j:re2j:1.8
    com.yammer.metrics:metrics-core:2.2.0
    org.hdrhistogram:HdrHistogram:2.2.2
    org.pcollections:pcollections:4.0.2
    org.jspecify:jspecify:1.0.0
    org.bitbucket.b_c:jose4j:0.9.6
    net.sf.jopt-simple:jopt-simple:5.0.4
    net.sourceforge.argparse4j:argparse4j:0.7.0
    commons-validator:commons-validator:1.10.1
    commons-beanutils:commons-beanutils:1.11.0
    commons-digester:commons-digester:2.1
    commons-collections:commons-collections:3.2.2
    commons-logging:commons-logging:1.3.5
    org.apache.logging.log4j:log4j-api:2.25.4
    org.apache.logging.log4j:log4j-core:2.25.4
    org.slf4j:slf4j-api:1.7.36
    org.slf4j:slf4j-simple:1.7.36
""")
"""The broker and what it depends on, and a logger that writes to standard error."""

OF_THE_DEMO = (HIVE_3_DISTRIBUTION, *HIVE_3_JARS, *KAFKA_JARS)
"""The artifacts that `calque demo` needs besides Delta's jars."""

OF_TESTS = (HIVE_4_SCHEMAS, *HIVE_4_JARS)
"""The artifacts that tests need besides those of the demo: the 4.2.0 server."""
