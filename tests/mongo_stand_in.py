"""A stand-in for a mongod: Maven's de.bwaldvogel:mongo-java-server, which is never measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

VERSION = "1.47.0"
_POM = f"""
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>stand-in</artifactId><version>1</version><dependencies>
<dependency><groupId>de.bwaldvogel</groupId><artifactId>mongo-java-server</artifactId>
<version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId>
<version>1.7.36</version></dependency></dependencies></project>
"""
_MAIN = """
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

public class StandIn {
    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend());
        if (arguments.length == 0) {
            System.out.println(server.bind().getPort());
            System.in.read(); // until the test closes it
            System.exit(0);
        }
        server.bind(arguments[0], Integer.parseInt(arguments[1]));
        Thread.currentThread().join();
    }
}
"""


def brought(directory: Path) -> list[str]:
    """Bring it into a directory; return the command that starts it.

    With an address and a port it listens there, else where it says, until its input is closed.
    """
    (directory / "pom.xml").write_text(_POM)
    (directory / "StandIn.java").write_text(_MAIN)
    copy = ["mvn", "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    subprocess.run(copy, cwd=directory, check=True)
    return ["java", "-cp", f"{directory}/jars/*", f"{directory}/StandIn.java"]
