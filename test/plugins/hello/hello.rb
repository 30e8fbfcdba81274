# Says hello from Ruby: the same lines as every other hello plugin.
require 'fileutils'

def primes_below(limit)
  sieve = Array.new(limit, true)
  (2...limit).select do |n|
    (n * n).step(limit - 1, n) { |multiple| sieve[multiple] = false } if sieve[n]
    sieve[n]
  end
end

greeting = "hello from Ruby #{RUBY_VERSION}"
puts greeting
ARGV.each { |argument| puts "argument: #{argument}" }
line = ($stdin.gets || '').chomp
puts "standard input: #{line.empty? ? '(empty)' : line}"
puts "directory: #{Dir.pwd}"
puts "primes below 1000: #{primes_below(1000).size}"
FileUtils.mkdir_p('out')
File.write('out/hello.txt', "#{greeting}\n")
puts 'wrote: out/hello.txt'
