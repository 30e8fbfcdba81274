/** What the system says of a file, in words for people. */

/** Why a file cannot be read or written, for the end of a sentence. */
export function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return 'there is no such file or folder';
    case 'EEXIST':
      return 'it is there already, and is not overwritten';
    case 'EACCES':
      return 'permission denied';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'one of the folders in its path is a file';
    case 'ENOSPC':
    case 'EDQUOT':
      return 'there is no space left on its disk';
    case 'EROFS':
      return 'its file system is read-only';
    default:
      return message;
  }
}
