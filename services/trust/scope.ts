// Patterns of names, as scopes of keys use them: `*` stands for any run of characters, `?` for one, all else for itself.

/** Whether a name matches a pattern, in time proportional to the product of their lengths at worst. */
export function matchesPattern(pattern: string, name: string): boolean {
  let patternAt = 0;
  let nameAt = 0;
  let star = -1;
  let resumeAt = 0;
  while (nameAt < name.length) {
    const wanted = pattern[patternAt];
    if (wanted === '*') {
      star = patternAt;
      patternAt += 1;
      resumeAt = nameAt;
    } else if (wanted === '?' || wanted === name[nameAt]) {
      patternAt += 1;
      nameAt += 1;
    } else if (star >= 0) {
      // The last star takes one character more, and matching goes on behind it.
      patternAt = star + 1;
      resumeAt += 1;
      nameAt = resumeAt;
    } else {
      return false;
    }
  }
  while (pattern[patternAt] === '*') patternAt += 1;
  return patternAt === pattern.length;
}

export function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, name));
}
