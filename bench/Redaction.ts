/** Measures the output of shells by kind of line: what lines full of secrets, or of escapes, cost against plain text. */
import * as LineBudget from "../packages/shell/src/output/LineBudget.ts"
import * as OutputPipeline from "../packages/shell/src/output/OutputPipeline.ts"
import * as RedactionStream from "../packages/shell/src/output/RedactionStream.ts"
import { Either } from "effect"
import { median } from "./Figures.ts"

/** Lines by kind. The first is plain text. */
const lines: Readonly<Record<string, string>> = {
  plain: "line of text with nothing special in it",
  "DB_PASSWORD=": "DB_PASSWORD=correct-horse-9",
  "token=abc": "line of text with token=abc",
  "password:": "the password: was wrong for user",
  "yaml password": "  password: hunter2",
  "http log": "127.0.0.1 - - [28/Nov/2026] GET /login?token=abc HTTP/1.1 200",
  url: "DATABASE_URL=postgres://user:hunter2@db.example.com:5432/app",
  bearer: "Authorization: Bearer abcdef123456abcdef",
  cookie: "Set-Cookie: session=abcdef123456; Path=/; HttpOnly",
  curl: "curl -u admin:hunter2 https://example.com/api",
  mysql: "mysql -u root -phunter2 app",
  "aws id": "AKIAIOSFODNN7EXAMPLE",
  github: "export GITHUB_TOKEN=ghp_aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7",
  jwt: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
  json: '{"password":"hunter2","user":"root"}',
  "escaped json": '{"msg":"{\\"password\\":\\"hunter2\\",\\"user\\":\\"root\\"}"}',
  "escaped json, harmless": '{"msg":"{\\"token\\": 12, \\"level\\":\\"info\\"}","path":"C:\\\\work"}',
  "escaped json, long": `{"log":"line of text\\twith \\"quoted\\" words and a token: abc\\nand a next line of it\\n","stream":"stdout"}`,
  "ends with hint": "export token",
  "npm lock":
    '      "integrity": "sha512-Jv8LqXtGqEhW3Z0nY5l1kqG1bq1B2o7hKzq9m5VQf2g0aTtQ3o9Rr0i1oYb1w1oG2m8Pp7q0xQ1ZzA==",',
  identifiers: "const getUserTokenFromSessionStorage2 = await fetchUserTokenV2(abc)",
  "random text": "value aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3x"
}

const secrets = RedactionStream.prepare()
const budget = Either.getOrThrow(LineBudget.compile({ max_chars: 100_000 }))

/** Milliseconds of a megabyte of the line, in portions as a pipe gives them. */
const millisecondsOf = (line: string, megabytes: number): number => {
  const text = Buffer.from(`${line}\n`.repeat(Math.ceil((megabytes * 1e6) / (line.length + 1))))
  const pipeline = OutputPipeline.make({ budget, secrets })
  const started = process.cpuUsage()
  for (let at = 0; at < text.length; at += 65_536) pipeline.add(text.subarray(at, at + 65_536))
  pipeline.end()
  return process.cpuUsage(started).user / 1000 / megabytes
}

/** Milliseconds of processor time for a megabyte of each kind, medians. */
export const measure = (
  rounds: number,
  megabytes: number
): { readonly plain: number } & Readonly<Record<string, number>> => {
  const kinds = Object.entries(lines)
  const found = new Map<string, Array<number>>(kinds.map(([kind]) => [kind, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [kind, line] of kinds) found.get(kind)?.push(millisecondsOf(line, megabytes))
  }
  const medians = Object.fromEntries([...found].map(([kind, times]) => [kind, median(times)]))
  return { ...medians, plain: medians["plain"] ?? Number.NaN }
}
