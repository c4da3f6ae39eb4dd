/** Trees as text. */
import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { TreeNode } from "../../packages/log/src/domain/HistoryPath.ts"
import { treeLines } from "../../packages/cli/src/commands/tree.ts"

const node = (seq: number, parent: number | undefined, onPath: boolean, more: object = {}) =>
  Schema.decodeUnknownSync(TreeNode)({
    id: `msg_${seq}`,
    ...(parent === undefined ? {} : { parentID: `msg_${parent}` }),
    seq,
    type: "user",
    text: `text ${seq}`,
    createdAt: 0,
    onPath,
    ...more
  })

it("CL-211: a message without text says so", () => {
  assert.match([...treeLines([node(1, undefined, true, { type: "assistant", text: "" })])].join(""), /\(no text\)\n$/)
})

it("CL-211: the kind of a message is a word for people, not the name of its type", () => {
  for (const [type, kind] of [
    ["model-switched", "model"],
    ["synthetic", "reminder"],
    ["assistant", "assistant"]
  ] as const) {
    assert.match([...treeLines([node(1, undefined, true, { type })])].join(""), new RegExp(`1  ${kind} +msg_1`))
  }
})

it("CL-211: the path is at the left, and branches are indented under the message where they begin", () => {
  const nodes = [
    node(1, undefined, true),
    node(2, 1, false),
    node(3, 2, false),
    node(4, 2, false),
    node(5, 1, true, { label: "here" }),
    node(6, 5, true, { leaf: true }),
    node(7, undefined, false)
  ]
  const shape = [...treeLines(nodes)].map((line) => line.replace(/ {2}user.*?(?= {2}\[|text)/, " ").trimEnd())
  assert.deepStrictEqual(
    shape.map((line) => line.replaceAll(/ +/g, " ")),
    [
      "|- o 7 text 7",
      "* 1 text 1",
      "|- o 2 text 2",
      "| |- o 3 text 3",
      "| o 4 text 4",
      "* 5 [here] text 5",
      "* 6 text 6 <- history continues here"
    ]
  )
})

it("CL-211: a tree of any depth is printed without recursion, at most 12 levels deep", () => {
  // Each message is the parent of the next one and of a branch.
  const nodes = Array.from({ length: 20_000 }, (_, at) =>
    node(at + 1, at === 0 ? undefined : Math.max(1, at - (at % 2)), false)
  )
  const lines = [...treeLines(nodes)]
  assert.strictEqual(lines.length, nodes.length)
  assert.isTrue(lines.every((line) => (line.match(/\|/g) ?? []).length <= 12))
})
