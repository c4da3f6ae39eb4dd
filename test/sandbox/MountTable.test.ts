import { assert, it } from "@effect/vitest"
import { type Meant, parse, strayIn } from "../../packages/core/src/child/Mounts.ts"

const host = parse(
  [
    "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw",
    "22 21 0:5 / /dev rw - devtmpfs devtmpfs rw",
    "23 21 0:22 / /tmp rw - tmpfs tmpfs rw",
    "24 21 8:2 /@home /home rw - btrfs /dev/sdb rw",
    "25 24 8:3 / /home/me/work/data rw - ext4 /dev/sdc rw"
  ].join("\n")
)

const meant: ReadonlyArray<Meant> = [
  { source: "/usr", point: "/usr", isReadOnly: true },
  { source: "/dev/null", point: "/dev/null", isReadOnly: false },
  { source: "/home/me/work", point: "/home/me/work", isReadOnly: false },
  { source: "/home/me/work/a b", point: "/home/me/work/a b", isReadOnly: false },
  { source: "/home/me/work/a b/.git", point: "/home/me/work/a b/.git", isReadOnly: true },
  { source: "/dev/null", point: "/home/me/work/.env", isReadOnly: true }
]

const right = [
  "51 1 0:60 / / ro - tmpfs tmpfs rw",
  "52 51 8:1 /usr /usr ro,nosuid - ext4 /dev/sda1 rw",
  "53 51 0:61 / /proc ro - proc proc rw",
  "54 51 0:62 / /dev ro - tmpfs tmpfs rw",
  "55 54 0:5 /null /dev/null rw - devtmpfs devtmpfs rw",
  "56 51 8:2 /@home/me/work /home/me/work rw - btrfs /dev/sdb rw",
  "57 56 8:3 / /home/me/work/data rw - ext4 /dev/sdc rw",
  "58 56 8:2 /@home/me/work/a\\040b /home/me/work/a\\040b rw - btrfs /dev/sdb rw",
  "59 58 8:2 /@home/me/work/a\\040b/.git /home/me/work/a\\040b/.git ro - btrfs /dev/sdb rw",
  "60 56 0:5 /null /home/me/work/.env ro - devtmpfs devtmpfs rw"
]

const stray = (...more: ReadonlyArray<string>) => strayIn(parse([...right, ...more].join("\n")), host, meant)

it("SB-18: the mounts that are meant, the host's below them, and those that the sandbox made are right", () => {
  assert.isUndefined(stray())
  assert.isUndefined(stray("61 56 0:63 / /home/me/work/hidden ro - tmpfs tmpfs rw"))
})

it("SB-18: a read-only file of the system that was replaced after it was mounted is right", () => {
  assert.isUndefined(stray("61 51 8:1 /usr//deleted /usr ro - ext4 /dev/sda1 rw"))
})

it.each([
  ["a system file that was replaced and can be written", "8:1 /usr//deleted /usr rw"],
  ["a guarded folder that was removed", "8:2 /@home/me/work/a\\040b/.git//deleted /home/me/work/a\\040b/.git ro"],
  ["another folder of the host at a place that is meant", "8:2 /@home/me /home/me/work/a\\040b rw"],
  ["a folder that is meant at another place", "8:2 /@home/me/work/a\\040b /home/me rw"],
  ["a folder at its own place that is not meant", "8:2 /@home/me /home/me rw"],
  ["another file system of the host", "0:22 / /home/me/work/a\\040b rw"],
  ["a whole file system of the host at a place of the sandbox's own", "0:22 / /tmp rw"],
  ["a guarded folder that can be written", "8:2 /@home/me/work/a\\040b/.git /home/me/work/a\\040b/.git rw"],
  ["a system folder that can be written", "8:1 /usr /usr rw,nosuid"],
  ["a folder that was moved after it was mounted", "8:2 /@home/me/work/y /home/me/work/y rw"],
  ["a folder that was removed after it was mounted", "8:2 /@home/me/work/a\\040b//deleted /home/me/work/a\\040b rw"]
])("SB-18: %s is found", (_, mount) => {
  const [device, root, point, options] = mount.split(" ")
  assert.strictEqual(stray(`61 56 ${device} ${root} ${point} ${options} - any any rw`), point)
})
