# The second file is given with --input; a gem of the standard library with a native part is loaded as well.
require_relative '../job/ruby-greeting'
require 'json'
require 'digest'

puts Greeting.for(JSON.parse('{"name":"Ruby"}')['name']), Digest::SHA256.hexdigest('')[0, 8]
