/** Lines of known hosts, compared with what OpenSSH's `ssh-keygen -F` finds in them. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { FastCheck as fc, Struct } from "effect"
import * as KnownHosts from "../../../packages/shell/src/transport/KnownHosts.ts"
import { cases } from "../../support/Cases.ts"
import { lacks } from "../../support/Parts.ts"

/** A key as a server presents it: its type, then its bytes. */
const key = (type: string, byte: number): Buffer => {
  const field = (bytes: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  }
  return Buffer.concat([field(Buffer.from(type)), field(Buffer.alloc(32, byte))])
}

const ed = key("ssh-ed25519", 1)
const other = key("ssh-ed25519", 2)
const ecdsa = key("ecdsa-sha2-nistp256", 3)
const line = (hosts: string, bytes: Buffer, marker = "") =>
  `${marker}${hosts} ${KnownHosts.keyType(bytes) ?? ""} ${bytes.toString("base64")} comment`
const verdict = (text: string, name: string, bytes: Buffer) =>
  KnownHosts.verdict(KnownHosts.parse(text).keys, name, bytes)

/** What `ssh-keygen -F` says of a host in these lines: the numbers of the lines that name it. */
const foundByOpenSsh = (text: string, name: string): ReadonlyArray<number> => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-hosts-"))
  try {
    writeFileSync(join(folder, "known_hosts"), text)
    const { stdout } = spawnSync("/usr/bin/ssh-keygen", ["-F", name, "-f", join(folder, "known_hosts")], {
      encoding: "utf8"
    })
    return [...stdout.matchAll(/found: line (\d+)/g)].map(([, number]) => Number(number))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const hashed = (text: string): string => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-hosts-"))
  try {
    writeFileSync(join(folder, "known_hosts"), text)
    execFileSync("/usr/bin/ssh-keygen", ["-H", "-f", join(folder, "known_hosts")], { stdio: "ignore" })
    return readFileSync(join(folder, "known_hosts"), "utf8")
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("lines of known hosts", () => {
  it("SL-87: each form of a line names the host that it should", () => {
    const named: ReadonlyArray<readonly [hosts: string, host: string, port: number, names: boolean]> = [
      ["example.org", "example.org", 22, true],
      ["example.org", "EXAMPLE.org", 22, true],
      ["Example.org", "example.org", 22, true],
      ["example.org", "example.org", 2222, false],
      ["[example.org]:2222", "example.org", 2222, true],
      ["[example.org]:2222", "example.org", 22, false],
      ["a,example.org,b", "example.org", 22, true],
      ["*.example.org", "www.example.org", 22, true],
      ["*.example.org", "example.org", 22, false],
      ["w?w.example.org", "www.example.org", 22, true],
      ["*.example.org,!www.example.org", "www.example.org", 22, false],
      ["*.example.org,!www.example.org", "ftp.example.org", 22, true],
      ["!www.example.org", "ftp.example.org", 22, false],
      ["*", "example.org", 2222, true]
    ]
    for (const [hosts, host, port, names] of named) {
      const expected = names ? "known" : "unknown"
      assert.strictEqual(verdict(line(hosts, ed), KnownHosts.hostName(host, port), ed), expected, `${hosts} ${host}`)
    }
  })

  it("SL-87: authorities, comments and lines that are not understood name no key; the latter are counted", () => {
    const text = [
      "# comment",
      "",
      `@cert-authority ${line("h", ed)}`,
      `@unheard ${line("h", ed)}`,
      "h ssh-ed25519",
      "h ssh-ed25519 !!!!",
      `h ssh-rsa ${ed.toString("base64")}`,
      `  ${line("h", other)}\r`
    ].join("\n")
    const { faults, keys } = KnownHosts.parse(text)
    assert.deepStrictEqual(faults, [4, 5, 6, 7])
    assert.deepStrictEqual(keys.map(Struct.get("key")), [other.toString("base64")])
  })

  it("SL-87: no text breaks the parser", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.string(), (text, name) => {
        KnownHosts.verdict(KnownHosts.parse(text).keys, name, ed)
        KnownHosts.verdict(KnownHosts.parse(line(text.replaceAll(/\s/g, ""), ed)).keys, name, ed)
        KnownHosts.keyType(Buffer.from(text))
      }),
      { numRuns: cases(200) }
    )
  })

  it("SL-88: a key is known, changed, revoked or unknown", () => {
    const text = [
      line("h", ed),
      line("h", ecdsa),
      line("r", ed),
      line("r", ed, "@revoked "),
      line("*", other, "@revoked ")
    ]
    const all = text.join("\n")
    assert.strictEqual(verdict(all, "h", ed), "known")
    assert.strictEqual(verdict(all, "h", ecdsa), "known")
    assert.strictEqual(verdict(all, "h", key("ssh-ed25519", 9)), "changed")
    assert.strictEqual(verdict(all, "h", key("ssh-rsa", 9)), "changed")
    assert.strictEqual(verdict(all, "h", other), "revoked")
    assert.strictEqual(verdict(all, "r", ed), "revoked")
    assert.strictEqual(verdict(all, "new", ed), "unknown")
  })

  it("SL-91: the known types of a host leave out revoked keys and other hosts", () => {
    const text = [line("h", ecdsa), line("h", other, "@revoked "), line("g", ed)].join("\n")
    assert.deepStrictEqual(KnownHosts.knownTypes(KnownHosts.parse(text).keys, "h"), ["ecdsa-sha2-nistp256"])
  })

  describe.skipIf(lacks("sshd"))("beside OpenSSH", () => {
    const name = fc.stringMatching(/^[ab]{1,4}(\.[ab]{1,2})?$/)
    const pattern = fc.stringMatching(/^!?[ab.?*]{1,5}$/)

    it("SL-87: a list of patterns names the hosts that OpenSSH says", () => {
      fc.assert(
        fc.property(fc.array(pattern, { minLength: 1, maxLength: 3 }), name, (patterns, host) => {
          const text = line(patterns.join(","), ed)
          assert.strictEqual(verdict(text, host, ed) === "known", foundByOpenSsh(text, host).length > 0, text)
        }),
        { numRuns: cases(60) }
      )
    })

    it("SL-87: names that OpenSSH hashes are found", () => {
      const text = hashed([line("example.org", ed), line("[example.org]:2222", other)].join("\n"))
      assert.notInclude(text, "example")
      assert.strictEqual(verdict(text, KnownHosts.hostName("Example.org", 22), ed), "known")
      assert.strictEqual(verdict(text, KnownHosts.hostName("example.org", 2222), other), "known")
      assert.strictEqual(verdict(text, KnownHosts.hostName("example.net", 22), ed), "unknown")
    })
  })
})
