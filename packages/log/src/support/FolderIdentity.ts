/** Identifies the folder at a path: a recreated folder has another identity. Spec: PM-42, TR-10. */
import * as fs from "node:fs/promises"

/**
 * The folder's inode and birth time, because inodes are reused; its inode and device if the file system records no
 * birth times. The device number alone may change when the system starts.
 */
export const folderIdentity = async (folder: string): Promise<string> => {
  const { birthtimeNs, dev, ino } = await fs.stat(folder, { bigint: true })
  return birthtimeNs > 0n ? `inode ${ino} born ${birthtimeNs}` : `inode ${ino} device ${dev}`
}
